//! Figures as a page of OpenMetrics text.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::figures::Figures;
use crate::names::{Family, Point, Value, families};

/// The type of the page.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The page that a scrape reads.
pub fn page(figures: &Arc<Figures>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Page(Arc::clone(figures))));
    let mut page = String::new();
    text::encode(&mut page, &registry).expect("a String takes every text");
    page
}

#[derive(Debug)]
struct Page(Arc<Figures>);

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        for family in families() {
            let points = family.points(&self.0);
            if !points.is_empty() {
                encode_family(&mut encoder, &family, &points, &self.0)?;
            }
        }
        Ok(())
    }
}

fn encode_family(
    encoder: &mut DescriptorEncoder,
    family: &Family,
    points: &[Point],
    figures: &Figures,
) -> Result<(), fmt::Error> {
    let kind = if family.counts {
        MetricType::Counter
    } else {
        MetricType::Gauge
    };
    let mut encoder = encoder.encode_descriptor(&family.prometheus, family.help, None, kind)?;
    for point in points {
        let labels = labels(point, figures);
        let encoder = encoder.encode_family(&labels)?;
        match point.value {
            Value::Count(value) => ConstCounter::new(value).encode(encoder)?,
            Value::Sum(value) => ConstCounter::new(value).encode(encoder)?,
            Value::Level(value) => ConstGauge::new(value).encode(encoder)?,
        }
    }
    Ok(())
}

/// The labels of dcgm-exporter, then ours. A label that would be empty is left out.
fn labels(point: &Point, figures: &Figures) -> Vec<(&'static str, String)> {
    let mut labels = Vec::new();
    if let Some((uuid, gpu)) = point.gpu {
        labels.push(("gpu", gpu.index.to_string()));
        labels.push(("UUID", uuid.to_owned()));
    }
    labels.push(("Hostname", figures.node.clone()));
    if let Some((_, gpu)) = point.gpu {
        labels.push(("source", gpu.source.name().to_owned()));
    }
    if let Some(series) = point.series {
        let own = [
            ("hpc_job", &series.job),
            ("rank", &series.rank),
            ("kernel", &series.kernel),
        ];
        labels.extend(
            own.into_iter()
                .filter_map(|(name, text)| Some((name, text.clone()?))),
        );
    }
    labels
}
