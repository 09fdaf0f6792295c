//! The objects of ETSI GS MEC 012 V2.1.1 as JSON, as far as our base station can fill them, and, kept separate from them, those of
//! our own extension ([`vendor`]).
//!
//! Names, required members and numbers follow ETSI's OpenAPI file of the API. Optional members may be missing, unknown members are
//! ignored, and an enumerated number may also come as a text that begins with it. Percentages are integers, means over the query's
//! period (TS 36.314); throughput is in kbit/s, volume in kbit, delay in ms.
//!
//! This file holds layer 2 measures, identifiers, handovers and subscriptions; bearers, tunnels and networks are in [`bearers`],
//! measurement reports, timing advance and carriers in [`measured`]. [`rab_info`], [`plmn_info`], [`event`], [`Traffic`] and
//! [`ReferenceSignal`] fill what our base station knows.
//!
//! The extension adds what the standard lacks: PRBs, MCS, CQI, block sizes and queues of a user, TTI by TTI, and the description of
//! a cell.

use ranpace_phy::{Both, Direction};
use ranpace_units::Time;
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub mod bearers;
mod filter;
mod layer2;
mod links;
pub mod measured;
mod measures;
mod object;
#[cfg(test)]
mod object_tests;
mod of_cell;
mod query;
#[cfg(test)]
mod tests;
pub mod vendor;

use crate::identity::Number;
pub use crate::identity::{AssociateId, Ecgi, IdType, Plmn};
pub use crate::measurement::{ReferenceSignal, Traffic};
pub use filter::Occurrence;
pub use layer2::{Layer2, Layer2Window};
pub use links::{ExpiryLinks, ExpiryNotification, SubscriptionLink, SubscriptionLinkList, SubscriptionLinks};
pub use of_cell::{Names, event, plmn_info, rab_info};

pub use query::{L2Query, QueryError, RabQuery, S1Query};

/// A time since 1970-01-01 00:00:00 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimeStamp {
    /// Seconds.
    pub seconds: u32,
    /// Nanoseconds, below 1e9.
    pub nano_seconds: u32,
}

impl TimeStamp {
    /// From a time that counts from 1970; saturates at the last representable second.
    pub fn of(time: Time) -> Self {
        const SECOND: u64 = 1_000_000_000;
        let nanos = time.as_nanos();
        let seconds = u32::try_from(nanos / SECOND).unwrap_or(u32::MAX);
        Self { seconds, nano_seconds: (nanos % SECOND) as u32 }
    }

    /// The time; nanoseconds beyond a second carry over.
    pub fn time(self) -> Time {
        Time::from_nanos(u64::from(self.seconds) * 1_000_000_000 + u64::from(self.nano_seconds))
    }
}

/// Stages of a handover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HoStatus {
    /// In preparation.
    InPreparation = 1,
    /// In execution.
    InExecution = 2,
    /// Completed.
    Completed = 3,
    /// Rejected by the target cell.
    Rejected = 4,
    /// Cancelled.
    Cancelled = 5,
}

impl Serialize for HoStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

impl<'de> Deserialize<'de> for HoStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Number::deserialize(deserializer)?.0 {
            1 => Ok(Self::InPreparation),
            2 => Ok(Self::InExecution),
            3 => Ok(Self::Completed),
            4 => Ok(Self::Rejected),
            5 => Ok(Self::Cancelled),
            other => Err(D::Error::invalid_value(Unexpected::Unsigned(other), &"a status from 1 to 5")),
        }
    }
}

/// Identifies a user temporarily.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TempUeId {
    /// MMEC; TS 36.413.
    pub mmec: String,
    /// M-TMSI; TS 36.413.
    pub mtmsi: String,
}

/// An object with optional measures, each named as in the query.
macro_rules! measures {
    ($(#[$doc:meta])* $name:ident { $($(#[$head_doc:meta])* $head:ident: $type:ty,)* } $($(#[$measure_doc:meta])* $measure:ident;)*) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct $name {
            $(
                $(#[$head_doc])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $head: Option<$type>,
            )*
            $(
                $(#[$measure_doc])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $measure: Option<u32>,
            )*
        }

        impl $name {
            /// Names of the measures.
            pub const MEASURES: &'static [&'static str] = &[$(stringify!($measure)),*];

            /// A copy with only the measures of these names; its identifiers stay.
            #[must_use]
            pub fn with_only(&self, names: &[&str]) -> Self {
                Self {
                    $($head: self.$head.clone(),)*
                    $($measure: self.$measure.filter(|_| names.contains(&stringify!($measure))),)*
                }
            }

            /// Whether there is any measure.
            pub fn has_measures(&self) -> bool {
                false $(|| self.$measure.is_some())*
            }
        }
    };
}

measures! {
    /// Measures of a cell.
    L2MeasCellInfo {
        /// The cell.
        ecgi: Ecgi,
    }
    /// Packets of GBR bearers discarded downlink, in percent.
    dl_gbr_pdr_cell;
    /// PRBs for GBR bearers downlink, in percent.
    dl_gbr_prb_usage_cell;
    /// Packets of other bearers discarded downlink, in percent.
    dl_nongbr_pdr_cell;
    /// PRBs for other bearers downlink, in percent.
    dl_nongbr_prb_usage_cell;
    /// PRBs used downlink, in percent.
    dl_total_prb_usage_cell;
    /// Users with GBR traffic downlink.
    number_of_active_ue_dl_gbr_cell;
    /// Users with other traffic downlink.
    number_of_active_ue_dl_nongbr_cell;
    /// Users with GBR traffic uplink.
    number_of_active_ue_ul_gbr_cell;
    /// Users with other traffic uplink.
    number_of_active_ue_ul_nongbr_cell;
    /// Dedicated preambles received, in percent.
    received_dedicated_preambles_cell;
    /// Preambles of the high range received, in percent.
    received_randomly_selected_preambles_high_range_cell;
    /// Preambles of the low range received, in percent.
    received_randomly_selected_preambles_low_range_cell;
    /// Packets of GBR bearers discarded uplink, in percent.
    ul_gbr_pdr_cell;
    /// PRBs for GBR bearers uplink, in percent.
    ul_gbr_prb_usage_cell;
    /// Packets of other bearers discarded uplink, in percent.
    ul_nongbr_pdr_cell;
    /// PRBs for other bearers uplink, in percent.
    ul_nongbr_prb_usage_cell;
    /// PRBs used uplink, in percent.
    ul_total_prb_usage_cell;
}

impl L2MeasCellInfo {
    /// Measures of a cell with `prbs` PRBs, of which `used` were used on average, and with this many active users. All traffic
    /// counts as without a guaranteed bit rate, because our bearers have none.
    pub fn of(ecgi: Ecgi, prbs: u16, used: Both<f64>, active_users: Both<u16>) -> Self {
        let percent = |used: f64| {
            let share = 100.0 * used / f64::from(prbs.max(1));
            // NaN counts as none.
            libm::round(share.clamp(0.0, 100.0)) as u32
        };
        let used = used.map(percent);
        Self {
            ecgi: Some(ecgi),
            dl_gbr_prb_usage_cell: Some(0),
            ul_gbr_prb_usage_cell: Some(0),
            dl_nongbr_prb_usage_cell: Some(used.downlink),
            ul_nongbr_prb_usage_cell: Some(used.uplink),
            dl_total_prb_usage_cell: Some(used.downlink),
            ul_total_prb_usage_cell: Some(used.uplink),
            number_of_active_ue_dl_gbr_cell: Some(0),
            number_of_active_ue_ul_gbr_cell: Some(0),
            number_of_active_ue_dl_nongbr_cell: Some(active_users.downlink.into()),
            number_of_active_ue_ul_nongbr_cell: Some(active_users.uplink.into()),
            ..Self::default()
        }
    }

    /// PRBs unused on average, of a cell with `prbs` PRBs; `None` if the usage is not reported. With this RAPID and SIGMA can work
    /// where a server offers only the standard, within a percent of the cell.
    pub fn unused_prbs(&self, prbs: u16, direction: Direction) -> Option<f64> {
        let usage = match direction {
            Direction::Downlink => self.dl_total_prb_usage_cell,
            Direction::Uplink => self.ul_total_prb_usage_cell,
        };
        usage.map(|percent| f64::from(prbs) * f64::from(100 - percent.min(100)) / 100.0)
    }
}

measures! {
    /// Measures of a user in a cell.
    L2MeasCellUEInfo {
        /// The cell.
        ecgi: Ecgi,
    }
    /// Volume of GBR traffic downlink, in kbit.
    dl_gbr_data_volume_ue;
    /// Delay of GBR traffic downlink, in ms.
    dl_gbr_delay_ue;
    /// GBR packets discarded downlink, in percent.
    dl_gbr_pdr_ue;
    /// Throughput of GBR traffic downlink, in kbit/s.
    dl_gbr_throughput_ue;
    /// Volume of other traffic downlink, in kbit.
    dl_nongbr_data_volume_ue;
    /// Delay of other traffic downlink, in ms.
    dl_nongbr_delay_ue;
    /// Other packets discarded downlink, in percent.
    dl_nongbr_pdr_ue;
    /// Throughput of other traffic downlink, in kbit/s.
    dl_nongbr_throughput_ue;
    /// Volume of GBR traffic uplink, in kbit.
    ul_gbr_data_volume_ue;
    /// Delay of GBR traffic uplink, in ms.
    ul_gbr_delay_ue;
    /// GBR packets discarded uplink, in percent.
    ul_gbr_pdr_ue;
    /// Throughput of GBR traffic uplink, in kbit/s.
    ul_gbr_throughput_ue;
    /// Volume of other traffic uplink, in kbit.
    ul_nongbr_data_volume_ue;
    /// Delay of other traffic uplink, in ms.
    ul_nongbr_delay_ue;
    /// Other packets discarded uplink, in percent.
    ul_nongbr_pdr_ue;
    /// Throughput of other traffic uplink, in kbit/s.
    ul_nongbr_throughput_ue;
}

/// A user's measures, with its identity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct L2MeasCellUe {
    /// The user.
    #[serde(rename = "associateId")]
    pub associate_id: AssociateId,
    /// Its measures.
    #[serde(flatten)]
    pub info: L2MeasCellUEInfo,
}

/// Layer 2 measurements: the answer to `layer2_meas`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct L2Meas {
    /// Cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cell_info: Vec<L2MeasCellInfo>,
    /// Users in them.
    #[serde(default, rename = "cellUEInfo", skip_serializing_if = "Vec::is_empty")]
    pub cell_ue_info: Vec<L2MeasCellUe>,
    /// Timestamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_stamp: Option<TimeStamp>,
}

/// A link to a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkType {
    /// Its address.
    pub href: String,
}

/// Links of a subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Links {
    /// To itself.
    #[serde(rename = "self")]
    pub itself: LinkType,
}

/// Which handovers are of interest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FilterCriteriaAssocHo {
    /// The application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_instance_id: Option<String>,
    /// Users; none are all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub associate_id: Vec<AssociateId>,
    /// Cells; none are all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ecgi: Vec<Ecgi>,
    /// Stages; none means completed ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ho_status: Vec<HoStatus>,
}

/// A notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "notificationType")]
#[non_exhaustive]
pub enum Notification {
    /// A handover.
    #[serde(rename = "CellChangeNotification", rename_all = "camelCase")]
    CellChange {
        /// The user.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        associate_id: Vec<AssociateId>,
        /// The stage.
        ho_status: HoStatus,
        /// The source cell.
        src_ecgi: Ecgi,
        /// The user, by a temporary identifier.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        temp_ue_id: Option<TempUeId>,
        /// Timestamp.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time_stamp: Option<TimeStamp>,
        /// The target cell; several only before completion.
        trg_ecgi: Vec<Ecgi>,
    },
    /// A bearer was set up.
    #[serde(rename = "RabEstNotification", rename_all = "camelCase")]
    RabEst {
        /// The user.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        associate_id: Vec<AssociateId>,
        /// The cell.
        ecgi: Ecgi,
        /// Its number.
        erab_id: u32,
        /// Its quality of service.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        erab_qos_parameters: Option<bearers::ErabQosParameters>,
        /// The user, by a temporary identifier.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        temp_ue_id: Option<TempUeId>,
        /// Timestamp.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time_stamp: Option<TimeStamp>,
    },
    /// A bearer was changed.
    #[serde(rename = "RabModNotification", rename_all = "camelCase")]
    RabMod {
        /// The user.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        associate_id: Vec<AssociateId>,
        /// The cell.
        ecgi: Ecgi,
        /// Number of the bearer.
        erab_id: u32,
        /// Its quality of service from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        erab_qos_parameters: Option<bearers::ErabQosParameters>,
        /// Timestamp.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time_stamp: Option<TimeStamp>,
    },
    /// A bearer was released.
    #[serde(rename = "RabRelNotification", rename_all = "camelCase")]
    RabRel {
        /// The user.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        associate_id: Vec<AssociateId>,
        /// Its cell.
        ecgi: Ecgi,
        /// The bearer.
        erab_release_info: ErabReleaseInfo,
        /// Timestamp.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time_stamp: Option<TimeStamp>,
    },
    /// A measurement report of a user in LTE.
    #[serde(rename = "MeasRepUeNotification")]
    MeasRepUe(Box<measured::MeasRepUe>),
    /// A measurement report of a user in NR.
    #[serde(rename = "NrMeasRepUeNotification")]
    NrMeasRepUe(measured::NrMeasRepUe),
    /// A user's timing advance was measured.
    #[serde(rename = "MeasTaNotification")]
    MeasTa(measured::MeasTa),
    /// A user's carriers have changed.
    #[serde(rename = "CaReconfNotification", alias = "CaReConfNotification")]
    CaReconf(measured::CaReconf),
    /// A bearer on S1 was set up, changed or released.
    #[serde(rename = "S1BearerNotification", rename_all = "camelCase")]
    S1Bearer {
        /// The event on S1.
        s1_event: bearers::S1Event,
        /// Whose, and which.
        s1_ue_info: bearers::S1UeNotified,
        /// Timestamp.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time_stamp: Option<TimeStamp>,
    },
    /// A subscription is about to end.
    #[serde(rename = "ExpiryNotification")]
    Expiry(ExpiryNotification),
    /// Whether notifications reach the subscriber (V2.2.1; MEC 009, 6.12a).
    #[serde(rename = "TestNotification")]
    Test(TestNotification),
    /// Of the extension: records of users.
    #[serde(rename = "VendorTtiMeasNotification", rename_all = "camelCase")]
    VendorTtiMeas {
        /// The records.
        meas: Vec<vendor::TtiMeas>,
        /// When it was written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time_stamp: Option<TimeStamp>,
    },
}

/// A test notification. Its only member, the link to the subscription, is added with that of every notification of V2.2.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestNotification {}

/// Identifies the released bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErabReleaseInfo {
    /// Its number.
    pub erab_id: u32,
}

/// A subscription.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "subscriptionType")]
#[non_exhaustive]
pub enum Subscription {
    /// To handovers.
    #[serde(rename = "CellChangeSubscription", rename_all = "camelCase")]
    CellChange {
        /// Links, in answers.
        #[serde(default, rename = "_links", skip_serializing_if = "Option::is_none")]
        links: Option<Links>,
        /// Address of notifications.
        callback_reference: String,
        /// Expiry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expiry_deadline: Option<TimeStamp>,
        /// The filter.
        filter_criteria_assoc_ho: FilterCriteriaAssocHo,
    },
    /// To bearers that are set up.
    #[serde(rename = "RabEstSubscription", rename_all = "camelCase")]
    RabEst {
        /// Links, in answers.
        #[serde(default, rename = "_links", skip_serializing_if = "Option::is_none")]
        links: Option<Links>,
        /// Address of notifications.
        callback_reference: String,
        /// Expiry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expiry_deadline: Option<TimeStamp>,
        /// The filter.
        filter_criteria_qci: bearers::FilterCriteriaQci,
    },
    /// To bearers that are changed.
    #[serde(rename = "RabModSubscription", rename_all = "camelCase")]
    RabMod {
        /// Links, in answers.
        #[serde(default, rename = "_links", skip_serializing_if = "Option::is_none")]
        links: Option<Links>,
        /// Address of notifications.
        callback_reference: String,
        /// Expiry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expiry_deadline: Option<TimeStamp>,
        /// The filter.
        filter_criteria_qci: bearers::FilterCriteriaErab,
    },
    /// To bearers that are released.
    #[serde(rename = "RabRelSubscription", rename_all = "camelCase")]
    RabRel {
        /// Links, in answers.
        #[serde(default, rename = "_links", skip_serializing_if = "Option::is_none")]
        links: Option<Links>,
        /// Address of notifications.
        callback_reference: String,
        /// Expiry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expiry_deadline: Option<TimeStamp>,
        /// The filter.
        filter_criteria_qci: bearers::FilterCriteriaErab,
    },
    /// To measurement reports in LTE.
    #[serde(rename = "MeasRepUeSubscription", rename_all = "camelCase")]
    MeasRepUe {
        /// Links, in answers.
        #[serde(default, rename = "_links", skip_serializing_if = "Option::is_none")]
        links: Option<Links>,
        /// Address of notifications.
        callback_reference: String,
        /// Expiry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expiry_deadline: Option<TimeStamp>,
        /// The filter.
        filter_criteria_assoc_tri: measured::FilterCriteriaAssocTri,
    },
    /// To measurement reports in NR.
    #[serde(rename = "NrMeasRepUeSubscription", rename_all = "camelCase")]
    NrMeasRepUe {
        /// Links, in answers.
        #[serde(default, rename = "_links", skip_serializing_if = "Option::is_none")]
        links: Option<Links>,
        /// Address of notifications.
        callback_reference: String,
        /// Expiry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expiry_deadline: Option<TimeStamp>,
        /// The filter.
        filter_criteria_nr_mrs: measured::FilterCriteriaNrMrs,
    },
    /// To timing advance.
    #[serde(rename = "MeasTaSubscription", rename_all = "camelCase")]
    MeasTa {
        /// Links, in answers.
        #[serde(default, rename = "_links", skip_serializing_if = "Option::is_none")]
        links: Option<Links>,
        /// Address of notifications.
        callback_reference: String,
        /// Expiry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expiry_deadline: Option<TimeStamp>,
        /// The filter.
        filter_criteria_assoc: measured::FilterCriteriaAssoc,
    },
    /// To changes of carriers.
    #[serde(rename = "CaReconfSubscription", alias = "CaReConfSubscription", rename_all = "camelCase")]
    CaReconf {
        /// Links, in answers.
        #[serde(default, rename = "_links", skip_serializing_if = "Option::is_none")]
        links: Option<Links>,
        /// Address of notifications.
        callback_reference: String,
        /// Expiry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expiry_deadline: Option<TimeStamp>,
        /// The filter.
        filter_criteria_assoc: measured::FilterCriteriaAssoc,
    },
    /// To bearers on S1.
    #[serde(rename = "S1BearerSubscription", rename_all = "camelCase")]
    S1Bearer {
        /// Links, in answers.
        #[serde(default, rename = "_links", skip_serializing_if = "Option::is_none")]
        links: Option<Links>,
        /// Address of notifications.
        callback_reference: String,
        /// The events of interest.
        event_type: Vec<bearers::S1Event>,
        /// Expiry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expiry_deadline: Option<TimeStamp>,
        /// The filter.
        #[serde(rename = "S1BearerSubscriptionCriteria")]
        criteria: bearers::S1BearerSubscriptionCriteria,
    },
    /// To records of users, of the extension.
    #[serde(rename = "VendorTtiMeasSubscription")]
    VendorTtiMeas(vendor::TtiMeasSubscription),
}

/// Why a request was refused; RFC 7807.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProblemDetails {
    /// Identifies the kind of problem.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// A short summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Details of this occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Identifies the occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}
