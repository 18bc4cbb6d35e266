//! The network of programs: which sockets a program makes, and what it does without any.

use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;

use super::command::Shell;

/// Tries each way to the network, and says how it ended.
const FORMS: &str = r#"
use Socket qw(:all);
my ($tcp, $udp) = @ARGV;
my $to = sockaddr_in($tcp, INADDR_LOOPBACK);
my $mapped = pack_sockaddr_in6($tcp, inet_pton(AF_INET6, "::ffff:127.0.0.1"));
my $free = sockaddr_in(0, INADDR_LOOPBACK);
my ($mptcp, $fast) = (262, 0x20000000);
sub stream { my $it; socket($it, $_[0], SOCK_STREAM, $_[1]) ? $it : undef }
sub reach { my $it = stream(@_[0, 1]) or return; connect($it, $_[2]) and syswrite($it, "OUT") }
sub quick { my $it = stream(@_[0, 1]) or return; defined send($it, "OUT", $fast, $_[2]) }
sub serve { my $it = stream(@_[0, 1]) or return; (!$_[2] or bind($it, $_[2])) and listen($it, 1) }
sub packet { my $it; socket($it, AF_INET, SOCK_DGRAM, 0) and defined send($it, "OUT", 0, $_[0]) }
my @forms = (
    ["TCP", sub { reach(AF_INET, 0, $to) }],
    ["TCP, mapped", sub { reach(AF_INET6, 0, $mapped) }],
    ["TCP, fast open", sub { quick(AF_INET, 0, $to) }],
    ["TCP, bind and listen", sub { serve(AF_INET, 0, $free) }],
    ["TCP, listen alone", sub { serve(AF_INET, 0) }],
    ["MPTCP", sub { reach(AF_INET, $mptcp, $to) }],
    ["MPTCP, mapped", sub { reach(AF_INET6, $mptcp, $mapped) }],
    ["MPTCP, fast open", sub { quick(AF_INET, $mptcp, $to) }],
    ["MPTCP, bind and listen", sub { serve(AF_INET, $mptcp, $free) }],
    ["MPTCP, listen alone", sub { serve(AF_INET, $mptcp) }],
    ["UDP", sub { packet(scalar sockaddr_in($udp, INADDR_LOOPBACK)) }],
    ["another kind", sub { socket(my $it, 17, SOCK_RAW, 0) }],
    ["a pair", sub { socketpair(my $a, my $b, AF_INET, SOCK_STREAM, 0) }],
    ["pointers of 32 bits", sub { syscall(0x40000029, AF_INET, SOCK_STREAM, 0) >= 0 }],
    ["more bits", sub { syscall(SOCKET, (1 << 32) | AF_INET, SOCK_STREAM, 0) >= 0 }],
    ["a ring", sub { my $it = "\0" x 120; syscall(425, 8, $it) >= 0 }],
);
for (@forms) { $! = 0; my $made = $_->[1]->(); print "$_->[0]: ", $made ? "made" : "$!", "\n" }
"#;

const DENIED: &str = "Permission denied";
const UNKNOWN: &str = "Function not implemented";

/// The number of the system call `socket`.
const SOCKET: &str = if cfg!(target_arch = "x86_64") { "41" } else { "198" };

#[test]
fn a_program_without_network_reaches_and_serves_nobody() {
    if !Path::new("/usr/bin/perl").exists() {
        return crate::skipped("no perl");
    }
    let (tcp, udp) = (TcpListener::bind("127.0.0.1:0"), UdpSocket::bind("127.0.0.1:0"));
    let (tcp, udp) = (tcp.unwrap(), udp.unwrap());
    tcp.set_nonblocking(true).unwrap();
    udp.set_nonblocking(true).unwrap();
    let ports = [tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port()];
    let forms = |settings: &str| -> Vec<(String, String)> {
        let shell = Shell::new(settings);
        fs::write(shell.scene.path("work/forms"), FORMS.replace("SOCKET,", &format!("{SOCKET},")))
            .unwrap();
        let ran = shell.sh(&format!("perl forms {} {}", ports[0], ports[1])).code(0);
        let lines =
            ran.out.lines().filter_map(|it| it.trim().trim_start_matches("<out>").split_once(": "));
        lines.map(|(form, end)| (form.to_owned(), end.to_owned())).collect()
    };
    let without = forms("");
    let ends = |form: &str| match form {
        "a ring" => UNKNOWN,
        "pointers of 32 bits" if cfg!(not(target_arch = "x86_64")) => UNKNOWN,
        _ => DENIED,
    };
    let expected: Vec<_> = without.iter().map(|it| (it.0.clone(), ends(&it.0).into())).collect();
    assert_eq!(without, expected);
    assert_eq!(tcp.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(udp.recv(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    // The same program makes each kind that the system has, where the network is allowed.
    let with = forms(", network: any, beside_open_door: true");
    assert_eq!(with.len(), 16, "{with:?}");
    for form in ["TCP", "TCP, bind and listen", "TCP, listen alone", "UDP", "more bits"] {
        assert!(with.contains(&(form.to_owned(), "made".to_owned())), "{form}: {with:?}");
    }
    assert!(with.iter().all(|it| it.1 != DENIED), "{with:?}");
    assert!(tcp.accept().is_ok() && udp.recv(&mut [0]).is_ok());
}

#[test]
fn a_program_without_network_has_sockets_of_its_own_and_finds_names() {
    let shell = Shell::new("");
    shell.sh("getent hosts localhost").code(0).says(&["localhost"]);
    if !Path::new("/usr/bin/perl").exists() {
        return crate::skipped("no perl");
    }
    let script = r#"
use Socket qw(:all);
socket(my $netlink, 16, SOCK_RAW, 0) or die "netlink: $!";
socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) or die "a pair: $!";
my ($at, $door, $in) = pack_sockaddr_un("door");
socket($door, AF_UNIX, SOCK_STREAM, 0) && bind($door, $at) && listen($door, 1) or die "a door: $!";
defined(my $child = fork) or die "a process: $!";
if (!$child) {
    socket($in, AF_UNIX, SOCK_STREAM, 0) && connect($in, $at) or die "in: $!";
    syswrite($in, "through the door"); exit;
}
accept($in, $door) or die "out: $!";
print <$in>;
"#;
    fs::write(shell.scene.path("work/script"), script).unwrap();
    shell.sh("perl script 2>&1").code(0).says(&["through the door"]);
}

#[test]
fn programs_of_many_processes_and_threads_run_without_network() {
    let shell = Shell::new("");
    shell.sh("seq 3 | sort -r | tr '\\n' ' '; (exec sh -c 'exit 7'); echo $?").says(&["3 2 1 7"]);
    shell.sh("git init -q here && git -C here status -s && echo clean").code(0).says(&["clean"]);
    if !Path::new("/usr/bin/python3").exists() {
        return crate::skipped("no python3");
    }
    let script = "
import asyncio, socket, subprocess, threading
said = []
threads = [threading.Thread(target=said.append, args=(it,)) for it in range(4)]
[it.start() for it in threads], [it.join() for it in threads]
async def echo():
    it = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1)
    return (await it.communicate(b'cat'))[0].decode()
names = socket.getaddrinfo('localhost', 80)
print(len(said), asyncio.run(echo()), subprocess.check_output(['echo', 'on']), names != [])
";
    fs::write(shell.scene.path("work/script.py"), script).unwrap();
    shell.sh("/usr/bin/python3 script.py 2>&1").code(0).says(&["4 cat b'on\\n' True"]);
}
