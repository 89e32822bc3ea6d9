//! The messages of OTLP that are used, by the numbers of the public protocol
//! (opentelemetry-proto 1.x, `metrics/v1/metrics.proto` and `collector/metrics/v1`).

use prost::{Message, Oneof};

use crate::figures::Figures;
use crate::names::{Family, Point, Value, families};

/// `ExportMetricsServiceRequest`.
#[derive(Clone, PartialEq, Message)]
pub struct Request {
    #[prost(message, repeated, tag = "1")]
    resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    description: String,
    #[prost(string, tag = "3")]
    unit: String,
    #[prost(oneof = "Data", tags = "5, 7")]
    data: Option<Data>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Data {
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    #[prost(message, tag = "7")]
    Sum(Sum),
}

#[derive(Clone, PartialEq, Message)]
struct Gauge {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<NumberDataPoint>,
}

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct Sum {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<NumberDataPoint>,
    #[prost(int32, tag = "2")]
    aggregation_temporality: i32,
    #[prost(bool, tag = "3")]
    is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message)]
struct NumberDataPoint {
    #[prost(fixed64, tag = "2")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    time_unix_nano: u64,
    #[prost(oneof = "Number", tags = "4, 6")]
    value: Option<Number>,
    #[prost(message, repeated, tag = "7")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Number {
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(sfixed64, tag = "6")]
    Integer(i64),
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

/// Of the kinds of `AnyValue` only texts are used.
#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(string, optional, tag = "1")]
    string_value: Option<String>,
}

fn attribute(key: &str, text: impl Into<String>) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            string_value: Some(text.into()),
        }),
    }
}

/// The bytes of one push: everything in `figures`, as it is at `now`.
pub fn request(figures: &Figures, now: u64) -> Vec<u8> {
    let metrics = families().into_iter().filter_map(|family| {
        let points = family.points(figures);
        let points: Vec<NumberDataPoint> = points
            .iter()
            .map(|point| data_point(&family, point, figures.began, now))
            .collect();
        (!points.is_empty()).then(|| metric(family, points))
    });
    let request = Request {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(Resource {
                attributes: vec![
                    attribute("service.name", "lockstep"),
                    attribute("host.name", figures.node.clone()),
                ],
            }),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(Scope {
                    name: "lockstep".to_owned(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                }),
                metrics: metrics.collect(),
            }],
        }],
    };
    request.encode_to_vec()
}

fn metric(family: Family, data_points: Vec<NumberDataPoint>) -> Metric {
    let data = if family.counts {
        Data::Sum(Sum {
            data_points,
            aggregation_temporality: CUMULATIVE,
            is_monotonic: true,
        })
    } else {
        Data::Gauge(Gauge { data_points })
    };
    Metric {
        name: family.otlp,
        description: family.help.to_owned(),
        unit: family.otlp_unit.to_owned(),
        data: Some(data),
    }
}

fn data_point(family: &Family, point: &Point, start: u64, now: u64) -> NumberDataPoint {
    let mut attributes = Vec::new();
    if let Some((uuid, gpu)) = point.gpu {
        attributes.push(attribute("hw.id", uuid));
        attributes.push(attribute("hw.type", "gpu"));
        attributes.push(attribute("lockstep.source", gpu.source.name()));
    }
    if let Some(series) = point.series {
        let own = [
            ("lockstep.job", &series.job),
            ("lockstep.rank", &series.rank),
            ("lockstep.kernel", &series.kernel),
        ];
        attributes.extend(
            own.into_iter()
                .filter_map(|(key, text)| Some(attribute(key, text.clone()?))),
        );
    }
    let value = match point.value {
        // A counter needs 292 years at a gigahertz to leave this range.
        Value::Count(count) => Number::Integer(i64::try_from(count).unwrap_or(i64::MAX)),
        Value::Sum(value) | Value::Level(value) => Number::Double(value * family.otlp_scale),
    };
    NumberDataPoint {
        start_time_unix_nano: start,
        time_unix_nano: now,
        value: Some(value),
        attributes,
    }
}
