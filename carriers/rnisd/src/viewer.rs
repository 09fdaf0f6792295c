//! Which users, and which of their identifiers, somebody may see.

use std::net::IpAddr;

use ipnet::IpNet;
use ranpace_rnis::etsi::{AssociateId, IdType, Notification};
use serde::{Deserialize, Serialize};

/// What somebody may see. The default is everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Viewer {
    /// Users with an address in one of these networks; `None` for all users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<Vec<IpNet>>,
    /// Kinds of identifiers by their numbers (`AssociateId`'s `type`); `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<u8>>,
}

impl Viewer {
    /// The identifiers under which a user may be seen; `None` if it may not be seen at all: it has no identifier that may.
    pub fn visible(&self, ids: &[AssociateId]) -> Option<Vec<AssociateId>> {
        let network = |id: &AssociateId| {
            let networks = self.users.as_deref()?;
            let address: Option<IpAddr> = match id.id_type {
                IdType::UeIpv4 | IdType::UeIpv6 => id.value.parse().ok(),
                IdType::NatedIp | IdType::GtpTeid | IdType::Reserved => None,
            };
            Some(address.is_some_and(|address| networks.iter().any(|of| of.contains(&address))))
        };
        if self.users.is_some() && !ids.iter().any(|id| network(id) == Some(true)) {
            return None;
        }
        // Of an address outside the networks, the reader learns nothing.
        let is_address = |id: &AssociateId| matches!(id.id_type, IdType::UeIpv4 | IdType::UeIpv6);
        let seen = |id: &&AssociateId| {
            self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&(id.id_type as u8)))
                && (!is_address(id) || network(id).unwrap_or(true))
        };
        let seen: Vec<AssociateId> = ids.iter().filter(seen).cloned().collect();
        (!seen.is_empty()).then_some(seen)
    }

    /// Whether the ends of tunnels may be seen: they contain the identifiers of tunnels.
    pub fn sees_tunnels(&self) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&(IdType::GtpTeid as u8)))
    }

    /// A notification as it may be seen; `None` if it may not be seen at all.
    pub fn sees(&self, notification: &Notification) -> Option<Notification> {
        if matches!(notification, Notification::S1Bearer { .. }) && !self.sees_tunnels() {
            return None;
        }
        self.visible(notification.user().unwrap_or_default()).map(|ids| notification.under(ids))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_seen_under_permitted_identifiers_only() {
        let id = |id_type, value: &str| AssociateId { id_type, value: value.to_owned() };
        let ids =
            [id(IdType::UeIpv4, "10.45.0.2"), id(IdType::UeIpv6, "2001:db8::2"), id(IdType::GtpTeid, "77")];
        let seen = |users: Option<&[&str]>, kinds: Option<&[u8]>| {
            let users = users.map(|of| of.iter().map(|net| net.parse().unwrap()).collect());
            let viewer = Viewer { users, kinds: kinds.map(<[u8]>::to_vec) };
            viewer.visible(&ids).map(|ids| ids.iter().map(|id| id.id_type as u8).collect::<Vec<_>>())
        };
        assert_eq!(seen(None, None), Some(vec![1, 2, 4]));
        assert_eq!(seen(Some(&["10.45.0.0/16"]), None), Some(vec![1, 4]));
        assert_eq!(seen(Some(&["10.46.0.0/16"]), None), None);
        assert_eq!(seen(None, Some(&[2])), Some(vec![2]));
        assert_eq!(seen(None, Some(&[3])), None);
        assert_eq!(seen(Some(&["10.45.0.0/16"]), Some(&[2])), None);
        assert_eq!(Viewer::default().visible(&[]), None);
    }
}
