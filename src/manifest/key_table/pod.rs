//! The keys of a pod file, in the form of ADR-013: those that Pumphouse uses, and those of Docker
//! Compose.

use crate::manifest::key_table::agent::agent;
use crate::manifest::key_table::feeds::{service, service_feeds};
use crate::manifest::key_table::{Key, Kind, Map, key};

/// The keys of a Compose file. They may have any values, and change nothing.
pub(in crate::manifest) const COMPOSE: &[&str] =
    &["configs", "include", "models", "name", "networks", "secrets", "version", "volumes"];

/// The keys of a service of a Compose file. They may have any values, and change nothing.
pub(in crate::manifest) const COMPOSE_SERVICE: &[&str] = &[
    "annotations",
    "attach",
    "blkio_config",
    "build",
    "cap_add",
    "cap_drop",
    "cgroup",
    "cgroup_parent",
    "command",
    "configs",
    "container_name",
    "cpu_count",
    "cpu_percent",
    "cpu_period",
    "cpu_quota",
    "cpu_rt_period",
    "cpu_rt_runtime",
    "cpu_shares",
    "cpus",
    "cpuset",
    "credential_spec",
    "depends_on",
    "deploy",
    "develop",
    "device_cgroup_rules",
    "devices",
    "dns",
    "dns_opt",
    "dns_search",
    "domainname",
    "entrypoint",
    "env_file",
    "environment",
    "expose",
    "extends",
    "external_links",
    "extra_hosts",
    "gpus",
    "group_add",
    "healthcheck",
    "hostname",
    "image",
    "init",
    "ipc",
    "isolation",
    "label_file",
    "labels",
    "links",
    "logging",
    "mac_address",
    "mem_limit",
    "mem_reservation",
    "mem_swappiness",
    "memswap_limit",
    "models",
    "network_mode",
    "networks",
    "oom_kill_disable",
    "oom_score_adj",
    "pid",
    "pids_limit",
    "platform",
    "ports",
    "post_start",
    "pre_stop",
    "privileged",
    "profiles",
    "provider",
    "pull_policy",
    "read_only",
    "restart",
    "runtime",
    "scale",
    "secrets",
    "security_opt",
    "shm_size",
    "stdin_open",
    "stop_grace_period",
    "stop_signal",
    "storage_opt",
    "sysctls",
    "tmpfs",
    "tty",
    "ulimits",
    "use_api_socket",
    "user",
    "userns_mode",
    "uts",
    "volumes",
    "volumes_from",
    "working_dir",
];

/// An example of a service of a pod file.
const EXAMPLE: &str = "services: {octopus: {x-claw: {agent: ./agents/OCTOPUS.md}}}";

/// The keys of a whole pod file.
pub(in crate::manifest) fn pod() -> Kind {
    let name = "The pod's name: requests for its agents and to its services have it.";
    let master = "The service that is the pod's master.";
    let services = "The services of the pod: agents, sources of feeds, and others.";
    let keys = vec![
        key("pod", Kind::Name, name, "pod: trading-desk"),
        key("master", Kind::Name, master, "master: octopus"),
    ];
    let about = Map { what: "x-claw", keys, one_of: &[] };
    let example = "x-claw: {pod: trading-desk, master: octopus}";
    let mut keys = vec![
        key("x-claw", Kind::Map(about), "What the pod is.", example),
        key("services", Kind::Named(Box::new(Kind::Map(pod_service()))), services, EXAMPLE),
    ];
    keys.extend(COMPOSE.iter().map(|it| of_compose(it)));
    Kind::Map(Map { what: "a pod", keys, one_of: &[] })
}

/// A service of a pod: an agent, a source of feeds, or a service of Compose. A service of Compose
/// changes nothing.
fn pod_service() -> Map {
    let agent = "x-claw: {agent: ./agents/OCTOPUS.md}";
    let mut keys = vec![key("x-claw", Kind::Map(claw()), "Makes it an agent.", agent)];
    keys.extend(service().keys.into_iter().map(|it| Key { needed: false, ..it }));
    keys.extend(COMPOSE_SERVICE.iter().map(|it| of_compose(it)));
    Map { what: "a service of a pod", keys, one_of: &[] }
}

/// The keys of an agent that a pod file says in its own way.
const OF_POD: [&str; 5] = ["use", "name", "prompt", "peers", "feeds"];

/// The keys of `x-claw` in a service: those of ADR-013, and those of an agent in a manifest.
fn claw() -> Map {
    let text = "The file of its system text, from the pod's folder.";
    let cllama = "Which proxy it has there. It changes nothing.";
    let feeds = "The feeds that it has of services.";
    let surfaces = "The services that it may call.";
    let feed = "feeds: [{source: claw-api, path: /fleet/alerts, ttl: 30}]";
    let surface = "surfaces: [\"service://claw-api\"]";
    let list = Kind::List(Box::new(Kind::Text));
    let mut keys = vec![
        Key { needed: true, ..key("agent", Kind::Path, text, "agent: ./agents/OCTOPUS.md") },
        key("cllama", Kind::Any, cllama, "cllama: passthrough"),
        key("feeds", service_feeds(), feeds, feed),
        key("surfaces", list, surfaces, surface),
    ];
    keys.extend(agent().keys.into_iter().filter(|it| !OF_POD.contains(&it.name)));
    Map { what: "x-claw of a service", keys, one_of: &[] }
}

fn of_compose(name: &'static str) -> Key {
    key(name, Kind::Any, "A key of Compose. It changes nothing.", &format!("{name}: …"))
}
