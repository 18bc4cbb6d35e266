//! Listeners whose payloads have the listener's name in their namespace.

use pumphouse::limits::XmlLimits;
use pumphouse::prelude::*;
use pumphouse::xml::{self, Profile};

/// Wants something.
#[derive(Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/shop/v1")]
struct Want {
    #[payload(attribute)]
    much: u32,
    what: String,
    any: Option<Element>,
}

/// What was wanted.
#[derive(Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/shop/v1")]
struct Sold {
    what: String,
    any: Option<Element>,
}

/// There is none.
#[derive(Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/shop/v1")]
struct Gone;

fn shop() -> Listener {
    Listener::new("shop").own_namespace().on(sell)
}

async fn sell(Want { much, what, any }: Want) -> Result<Sold, Gone> {
    (much > 0).then_some(Sold { what, any }).ok_or(Gone)
}

fn want(shop: &str, much: u32) -> Element {
    let text = format!(
        "<want xmlns=\"https://xml-pipeline.org/ns/{shop}/v1\" much=\"{much}\"><what>tea &lt;\
         </what><leaf xmlns=\"urn:x\" a=\"1\">green</leaf></want>"
    );
    xml::read(text, Profile::Wire, &XmlLimits::DOOR).unwrap()
}

#[tokio::test]
async fn two_of_a_kind_stand_side_by_side() {
    let all = (shop(), shop().named("kiosk").named("stall"));
    let pump = pumphouse::builder().with(all).build().unwrap().start();
    for name in ["shop", "stall"] {
        let namespace = format!("https://xml-pipeline.org/ns/{name}/v1");
        let answer = pump.ask_element(want(name, 1)).await.unwrap();
        let answer = answer.element().unwrap().clone();
        assert!(answer.is(&namespace, "sold"), "{answer:?}");
        let mut children = answer.view().elements();
        let what = children.next().unwrap();
        assert!(what.is(&namespace, "what") && what.text() == "tea <");
        assert!(children.next().unwrap().is("urn:x", "leaf"));
        let refusal = pump.ask_element(want(name, 0)).await.unwrap();
        let refusal = refusal.element().unwrap().clone();
        assert!(refusal.is(&namespace, "gone"), "{refusal:?}");
    }
    let nobody = pump.ask_element(want("kiosk", 1)).await;
    assert!(nobody.is_err(), "the name in between is nobody's");
    pump.shutdown().await.unwrap();
}

#[test]
fn the_organism_knows_each_by_its_name() {
    let plan = pumphouse::builder().with((shop(), shop().named("stall"))).build().unwrap();
    let stall = plan.capabilities().listener("stall").unwrap();
    let names: Vec<String> = stall.takes.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["{https://xml-pipeline.org/ns/stall/v1}want"]);
    let emits: Vec<_> = stall.emits[&stall.takes[0]].iter().map(|it| it.local()).collect();
    assert_eq!(emits, ["sold", "gone"]);
    assert_eq!(plan.capabilities().find("stall.want").unwrap().name, stall.takes[0]);
    assert!(shop().disputes(&shop().named("stall")).is_none());
}
