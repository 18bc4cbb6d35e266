//! Formats amounts of money.

/// The text for an unknown value.
pub(crate) const UNKNOWN: &str = "–";

/// Formats a number of millionths as a decimal number with six places.
pub(crate) fn money(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let micros = micros.unsigned_abs();
    format!("{sign}{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_six_places() {
        let shown = [0, 7, 1_500_000, -12].map(money);
        assert_eq!(shown, ["0.000000", "0.000007", "1.500000", "-0.000012"]);
    }
}
