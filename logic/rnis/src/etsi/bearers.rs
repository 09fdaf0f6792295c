//! Bearers and networks: `rab_info`, `plmn_info` and `s1_bearer_info`, and the content of their notifications and subscriptions.

use super::object::{number, object};
use super::{AssociateId, Ecgi, Plmn, TempUeId, TimeStamp};

object! {
    /// The networks of an application's users: an entry of the answer to `plmn_info`.
    PlmnInfo {
        /// The application.
        app_instance_id: String,
        /// The networks; at least one.
        plmn: Vec<Plmn>,
        ;;
        /// Timestamp.
        time_stamp: TimeStamp,
    }
}

object! {
    /// Rates of a bearer in bit/s; TS 23.401.
    QosInformation {
        /// Guaranteed, downlink.
        erab_gbr_dl: u64,
        /// Guaranteed, uplink.
        erab_gbr_ul: u64,
        /// Maximum, downlink.
        erab_mbr_dl: u64,
        /// Maximum, uplink.
        erab_mbr_ul: u64,
    }
}

object! {
    /// The quality of service of a bearer.
    ErabQosParameters {
        /// QoS class identifier; TS 23.203, table 6.1.7. 9 is that of a default bearer.
        qci: u8,
        ;;
        /// Its rates, if any are guaranteed.
        qos_information: QosInformation,
    }
}

object! {
    /// A bearer.
    ErabInfo {
        ;;
        /// Its number: 5 to 15 (TS 24.301, 9.3.2).
        erab_id: u32,
        /// Its quality of service.
        erab_qos_parameters: ErabQosParameters,
    }
}

object! {
    /// Bearers of a user.
    UeInfo {
        []
        /// The user.
        associate_id: AssociateId,
        /// Its bearers.
        erab_info: ErabInfo,
    }
}

object! {
    /// Users of a cell.
    CellUserInfo {
        ;;
        /// The cell.
        ecgi: Ecgi,
        []
        /// The users.
        ue_info: UeInfo,
    }
}

object! {
    /// Bearers: the answer to `rab_info`.
    RabInfo {
        /// The application that asked.
        app_instance_id: String,
        /// The request's identifier.
        request_id: String,
        ;;
        /// Timestamp.
        time_stamp: TimeStamp,
        []
        /// Cell by cell.
        cell_user_info: CellUserInfo,
    }
}

object! {
    /// An end of a tunnel.
    TunnelEnd {
        /// Its address.
        ip_address: String,
        /// Its GTP-U TEID.
        tunnel_id: String,
    }
}

object! {
    /// Both ends of the tunnel of a bearer on S1.
    S1Bearer {
        ;;
        /// At the base station.
        enb_info: TunnelEnd,
        /// The bearer.
        erab_id: u32,
        /// At the serving gateway.
        s_gw_info: TunnelEnd,
    }
}

object! {
    /// Bearers of a user on S1.
    S1UeInfo {
        ;;
        /// The user, by a temporary identifier.
        temp_ue_id: TempUeId,
        []
        /// The user.
        associate_id: AssociateId,
        /// Its cells.
        ecgi: Ecgi,
        /// The bearers.
        s1_bearer_info_detailed: S1Bearer,
    }
}

object! {
    /// The answer to `s1_bearer_info`.
    S1BearerInfo {
        /// User by user; at least one.
        s1_ue_info: Vec<S1UeInfo>,
        ;;
        /// Timestamp.
        time_stamp: TimeStamp,
    }
}

object! {
    /// Bearers of a user on S1 in a notification, where the standard names them differently.
    S1UeNotified {
        /// Its cells.
        ecgi: Vec<Ecgi>,
        /// The bearers.
        s1_bearer_info: Vec<S1Bearer>,
        ;;
        /// The user, by a temporary identifier.
        temp_ue_id: TempUeId,
        []
        /// The user.
        associate_id: AssociateId,
    }
}

number! {
    /// Events of a bearer on S1.
    S1Event, "an event from 1 to 3" {
        /// It was set up.
        Establish = 1,
        /// It was changed.
        Modify = 2,
        /// It was released.
        Release = 3,
    }
}

object! {
    /// Selects bearers that are set up.
    FilterCriteriaQci {
        /// Only those of this class.
        qci: u8,
        ;;
        /// The application.
        app_instance_id: String,
        []
        /// Cells; none are all.
        ecgi: Ecgi,
    }
}

object! {
    /// Selects bearers that are changed or released.
    FilterCriteriaErab {
        /// Only the one with this number.
        erab_id: u32,
        /// Only those of this class.
        qci: u8,
        ;;
        /// The application.
        app_instance_id: String,
        []
        /// Cells; none are all.
        ecgi: Ecgi,
    }
}

object! {
    /// Selects bearers on S1.
    S1BearerSubscriptionCriteria {
        []
        /// Users; none are all.
        associate_id: AssociateId,
        /// Cells; none are all.
        ecgi: Ecgi,
        /// Numbers of bearers; none are all.
        erab_id: u32,
    }
}
