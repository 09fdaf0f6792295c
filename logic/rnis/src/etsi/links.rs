//! Links to subscriptions: the list of existing ones, and the notice that one is about to expire.

use serde::{Deserialize, Deserializer, Serialize};

use super::{LinkType, Subscription, TimeStamp};

/// The answer to `GET /rni/v2/subscriptions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriptionLinkList {
    /// Its links.
    #[serde(rename = "_links")]
    pub links: SubscriptionLinks,
}

/// The links of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriptionLinks {
    /// To the list itself.
    #[serde(rename = "self")]
    pub itself: LinkType,
    /// To each subscription.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscription: Vec<SubscriptionLink>,
}

/// A link to a subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionLink {
    /// Its address.
    pub href: String,
    /// Its kind: its `subscriptionType`.
    pub subscription_type: String,
}

impl SubscriptionLinkList {
    /// From subscriptions with their addresses, only those of `kind` if one is given; `list` is the address of the list. Kinds are
    /// named as in the query, such as `cell_change`.
    pub fn of<'a>(
        list: &str,
        subscriptions: impl IntoIterator<Item = (&'a str, &'a Subscription)>,
        kind: Option<&str>,
    ) -> Self {
        let link = |(href, subscription): (&str, &Subscription)| SubscriptionLink {
            href: href.to_owned(),
            subscription_type: subscription.kind().0.to_owned(),
        };
        let wanted = |(_, of): &(&str, &Subscription)| kind.is_none_or(|kind| of.kind().1 == kind);
        let subscription = subscriptions.into_iter().filter(wanted).map(link).collect();
        Self { links: SubscriptionLinks { itself: LinkType { href: list.to_owned() }, subscription } }
    }
}

impl Subscription {
    /// The name of its kind: as `subscriptionType`, and in the query of the list (V2.1.1, table 7.6.3.1-1; the last is ours).
    pub const fn kind(&self) -> (&'static str, &'static str) {
        match self {
            Self::CellChange { .. } => ("CellChangeSubscription", "cell_change"),
            Self::RabEst { .. } => ("RabEstSubscription", "rab_est"),
            Self::RabMod { .. } => ("RabModSubscription", "rab_mod"),
            Self::RabRel { .. } => ("RabRelSubscription", "rab_rel"),
            Self::MeasRepUe { .. } => ("MeasRepUeSubscription", "meas_rep_ue"),
            Self::NrMeasRepUe { .. } => ("NrMeasRepUeSubscription", "nr_meas_rep_ue"),
            Self::MeasTa { .. } => ("MeasTaSubscription", "timing_advance_ue"),
            Self::CaReconf { .. } => ("CaReconfSubscription", "ca_reconf"),
            Self::S1Bearer { .. } => ("S1BearerSubscription", "s1_bearer"),
            Self::VendorTtiMeas(_) => ("VendorTtiMeasSubscription", "vendor_tti_meas"),
        }
    }
}

/// The notice that a subscription is about to expire, as in V2.1.1. That version's file does not name a `notificationType` here,
/// others do: a [`Notification`](super::Notification) writes one, and this reads with or without it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpiryNotification {
    /// The subscription.
    #[serde(rename = "_links")]
    pub links: ExpiryLinks,
    /// When it expires.
    pub expiry_deadline: TimeStamp,
    /// When this was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_stamp: Option<TimeStamp>,
}

/// The expiring subscription. V2.1.1 calls it `self`, and makes it an address instead of a link; a link, and the later versions'
/// `subscription`, are read too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExpiryLinks {
    /// The subscription's address.
    #[serde(rename = "self")]
    pub itself: String,
}

impl<'de> Deserialize<'de> for ExpiryLinks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Address(String),
            Link(LinkType),
        }
        #[derive(Deserialize)]
        struct Read {
            #[serde(rename = "self", alias = "subscription")]
            itself: Either,
        }
        let itself = match Read::deserialize(deserializer)?.itself {
            Either::Address(address) => address,
            Either::Link(link) => link.href,
        };
        Ok(Self { itself })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Notification;
    use super::*;

    #[test]
    fn a_list_links_to_subscriptions_by_kind() {
        let subscription = |text: serde_json::Value| serde_json::from_value::<Subscription>(text).unwrap();
        let change = subscription(
            json!({ "subscriptionType": "CellChangeSubscription", "callbackReference": "http://a",
            "filterCriteriaAssocHo": {} }),
        );
        let records = subscription(
            json!({ "subscriptionType": "VendorTtiMeasSubscription", "callbackReference": "http://a", "period_us": 1000 }),
        );
        let all =
            [("http://mec/rni/v2/subscriptions/1", &change), ("http://mec/rni/v2/subscriptions/2", &records)];
        let list = SubscriptionLinkList::of("http://mec/rni/v2/subscriptions", all, None);
        let expected = json!({ "_links": {
            "self": { "href": "http://mec/rni/v2/subscriptions" },
            "subscription": [
                { "href": "http://mec/rni/v2/subscriptions/1", "subscriptionType": "CellChangeSubscription" },
                { "href": "http://mec/rni/v2/subscriptions/2", "subscriptionType": "VendorTtiMeasSubscription" },
            ],
        } });
        assert_eq!(serde_json::to_value(&list).unwrap(), expected);
        assert_eq!(serde_json::from_value::<SubscriptionLinkList>(expected).unwrap(), list);
        let some = SubscriptionLinkList::of("http://mec/rni/v2/subscriptions", all, Some("cell_change"));
        assert_eq!(some.links.subscription.len(), 1);
        let none = SubscriptionLinkList::of("/", all, Some("rab_est"));
        assert_eq!(serde_json::to_value(&none).unwrap(), json!({ "_links": { "self": { "href": "/" } } }));
        // Each kind is named as its objects are.
        let value = serde_json::to_value(&change).unwrap();
        assert_eq!(value["subscriptionType"], change.kind().0);
    }

    #[test]
    fn the_end_of_a_subscription_is_told_as_the_version_has_it_and_read_as_others_have_it() {
        let deadline = TimeStamp { seconds: 1_577_836_800, nano_seconds: 0 };
        let address = "http://mec/rni/v2/subscriptions/1";
        let own = ExpiryNotification {
            links: ExpiryLinks { itself: address.to_owned() },
            expiry_deadline: deadline,
            time_stamp: None,
        };
        let written = json!({ "_links": { "self": address }, "expiryDeadline": { "seconds": 1_577_836_800, "nanoSeconds": 0 } });
        assert_eq!(serde_json::to_value(&own).unwrap(), written);
        let mut named = written.clone();
        named["notificationType"] = json!("ExpiryNotification");
        assert_eq!(serde_json::to_value(Notification::Expiry(own.clone())).unwrap(), named);
        assert_eq!(
            serde_json::from_value::<Notification>(named.clone()).unwrap(),
            Notification::Expiry(own.clone())
        );
        for links in [
            json!({ "self": address }),
            json!({ "self": { "href": address } }),
            json!({ "subscription": { "href": address } }),
        ] {
            named["_links"] = links;
            assert_eq!(serde_json::from_value::<ExpiryNotification>(named.clone()).unwrap(), own);
        }
        named["_links"] = json!({});
        assert!(serde_json::from_value::<ExpiryNotification>(named).is_err());
    }
}
