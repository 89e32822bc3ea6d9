//! Text and clocks, for all values: what is printed reads back, and edges never drift.

use lockstep_units::*;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Text, JSON and binary give back the value they were made from.
fn round_trips<T>(value: T) -> Result<(), TestCaseError>
where
    T: Copy + std::fmt::Debug + std::fmt::Display + PartialEq + Serialize + DeserializeOwned,
    T: std::str::FromStr<Err = ParseError>,
{
    prop_assert_eq!(value.to_string().parse::<T>().unwrap(), value);
    let json = serde_json::to_string(&value).unwrap();
    prop_assert_eq!(&json, &format!("\"{value}\""));
    prop_assert_eq!(serde_json::from_str::<T>(&json).unwrap(), value);
    let binary = postcard::to_stdvec(&value).unwrap();
    prop_assert_eq!(postcard::from_bytes::<T>(&binary).unwrap(), value);
    Ok(())
}

/// Round values, powers of two and arbitrary ones: each prints its own way.
fn raw() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..4096u64,
        (0..64u32).prop_map(|shift| 1 << shift),
        (0..20u32, 1..10_000u64).prop_map(|(power, n)| n.saturating_mul(10u64.pow(power))),
    ]
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(raw in raw()) {
        round_trips(Bytes(raw))?;
        round_trips(Cycles(raw))?;
        round_trips(Cycle(raw))?;
        round_trips(Time(raw))?;
        round_trips(Duration(raw))?;
        round_trips(Address(raw))?;
        if let Some(rate) = Hertz::new(raw) {
            round_trips(rate)?;
            round_trips(Bandwidth::new(raw).unwrap())?;
            round_trips(BytesPerCycle::new(raw).unwrap())?;
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}|[0-9._]{0,60} ?[kKMGTi]{0,2}(B|Hz|s|cycles|B/s)") {
        let _ = text.parse::<Bytes>();
        let _ = text.parse::<Cycle>();
        let _ = text.parse::<Cycles>();
        let _ = text.parse::<Hertz>();
        let _ = text.parse::<Duration>();
        let _ = text.parse::<Bandwidth>();
        let _ = text.parse::<Address>();
    }

    #[test]
    fn the_edge_of_a_cycle_leads_back_to_it(hertz in 1u64..1_000_000_000_000_000, cycle in 0u64..1 << 40) {
        let clock = Hertz::new(hertz).unwrap();
        let edge = clock.edge(Cycle(cycle));
        prop_assume!(edge != Time::NEVER);
        prop_assert_eq!(clock.cycle_at_or_after(edge), Cycle(cycle));
        prop_assert_eq!(clock.cycle_at_or_after(edge + Duration(1)), Cycle(cycle + 1));
    }

    #[test]
    fn every_edge_is_at_or_after_its_time(hertz in 1u64..1_000_000_000_000_000, time in any::<u64>()) {
        let clock = Hertz::new(hertz).unwrap();
        let cycle = clock.cycle_at_or_after(Time(time));
        prop_assume!(cycle != Cycle(u64::MAX));
        prop_assert!(clock.edge(cycle) >= Time(time));
        prop_assert!(cycle.0 == 0 || clock.edge(Cycle(cycle.0 - 1)) < Time(time));
    }

    #[test]
    fn a_walking_clock_agrees_with_the_computed_edges(hertz in 1u64..20_000_000_000, start in 0u64..1 << 50) {
        let frequency = Hertz::new(hertz).unwrap();
        let mut clock = Clock::new(frequency);
        clock.seek(Time(start));
        prop_assert_eq!(clock.cycle(), frequency.cycle_at_or_after(Time(start)));
        for _ in 0..200 {
            prop_assert_eq!(clock.time(), frequency.edge(clock.cycle()));
            clock.advance();
        }
    }

    #[test]
    fn a_duration_in_cycles_is_never_shorter_than_asked(hertz in 1u64..20_000_000_000, cycles in 0u64..1 << 30) {
        let clock = Hertz::new(hertz).unwrap();
        let length = clock.duration(Cycles(cycles));
        prop_assume!(length.0 != u64::MAX);
        prop_assert!(u128::from(length.0) * u128::from(hertz) >= u128::from(cycles) * 1_000_000_000_000_000);
        prop_assert_eq!(clock.whole_cycles(length), Cycles(cycles).max(clock.whole_cycles(length)));
    }

    #[test]
    fn bytes_pass_no_faster_than_the_bandwidth(rate in 1u64.., size in any::<u64>()) {
        let time = Bandwidth::new(rate).unwrap().time_for(Bytes(size));
        let exact = (u128::from(size) * 1_000_000_000_000_000).div_ceil(u128::from(rate));
        prop_assert_eq!(u128::from(time.0), exact.min(u128::from(u64::MAX)));
    }
}

#[test]
fn the_clock_of_an_a100_does_not_drift() {
    // A period rounded to 709 ps would be a millisecond early after three seconds.
    let clock: Hertz = "1.41 GHz".parse().unwrap();
    assert_eq!(clock.edge(Cycle(1)), Time(709_219));
    assert_eq!(
        clock.edge(Cycle(1_410_000_000 * 3)),
        Time(3_000_000_000_000_000)
    );
    assert_eq!(clock.duration(Cycles(1)), Duration(709_220));
}

#[test]
fn what_configuration_files_say_is_understood() {
    assert_eq!("23840 ps".parse(), Ok(Duration(23_840_000)));
    assert_eq!(
        "16 GB/s".parse(),
        Ok(Bandwidth::new(16_000_000_000).unwrap())
    );
    assert_eq!("64 B/cycle".parse(), Ok(BytesPerCycle::new(64).unwrap()));
    assert_eq!(
        "400 Gbit/s".parse(),
        Ok(Bandwidth::new(50_000_000_000).unwrap())
    );
    let rate = BytesPerCycle::new(64).unwrap().at(Hertz::mega(1_410));
    assert_eq!(rate.to_string(), "90.24 GB/s");
    let error = serde_json::from_str::<Bytes>("512")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("a size with its unit, such as \"512 KiB\""),
        "{error}"
    );
    assert!(postcard::from_bytes::<Hertz>(&[0]).is_err());
}
