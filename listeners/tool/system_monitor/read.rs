//! Parses the kernel's files about the system.

use super::{Load, Memory, Process};

/// The number of bytes of the unit in `meminfo`, which the kernel calls `kB`.
const KIB: u64 = 1024;

/// Parses `/proc/loadavg`: its first three numbers are the loads.
pub(super) fn load(text: &str, cpus: u64) -> Option<Load> {
    let mut all = text.split_whitespace().map(|it| it.parse::<f64>().ok());
    Some(Load { one: all.next()??, five: all.next()??, fifteen: all.next()??, cpus })
}

/// Parses `/proc/meminfo`. Only four of its lines are used.
pub(super) fn memory(text: &str) -> Option<Memory> {
    let line = |key: &str| {
        let rest = text.lines().find_map(|it| it.strip_prefix(key)?.strip_prefix(':'))?;
        let number: u64 = rest.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        Some(number.saturating_mul(KIB))
    };
    let (total, available) = (line("MemTotal")?, line("MemAvailable")?);
    // A kernel may be built without swap.
    let (swap, swap_free) = (line("SwapTotal").unwrap_or(0), line("SwapFree").unwrap_or(0));
    Some(Memory { total, available, swap, swap_free })
}

/// Parses a process's `status`. The kernel's own processes have no line `VmRSS`: their memory is 0.
pub(super) fn process(id: u32, status: &str) -> Option<Process> {
    let line = |key: &str| status.lines().find_map(|it| it.strip_prefix(key)?.strip_prefix(':'));
    let name = line("Name")?.trim().to_owned();
    let held = line("VmRSS").and_then(|it| it.trim().strip_suffix(" kB")?.trim().parse().ok());
    Some(Process { id, name, memory: held.unwrap_or(0_u64).saturating_mul(KIB) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_is_read_and_what_is_odd_is_none() {
        let read = load("0.42 0.40 1.35 2/212 7\n", 4).unwrap();
        assert_eq!((read.one, read.five, read.fifteen, read.cpus), (0.42, 0.4, 1.35, 4));
        assert_eq!(load("0.42 x", 4), None);
        let read = memory("MemTotal:  16 kB\nMemFree: 1 kB\nMemAvailable: 8 kB\nSwapFree: 2 kB\n");
        let expected = Memory { total: 16_384, available: 8_192, swap: 0, swap_free: 2_048 };
        assert_eq!(read, Some(expected));
        assert_eq!(memory("MemTotal: 16 kB"), None);
        let read = process(7, "Name:\ta b\nState:\tS\nVmRSS:\t      12 kB\n").unwrap();
        assert_eq!((read.name.as_str(), read.memory), ("a b", 12_288));
        assert_eq!(process(7, "Name:\tkthreadd\n").unwrap().memory, 0);
        assert_eq!(process(7, ""), None);
    }
}
