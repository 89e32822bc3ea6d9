//! The report as one HTML page without anything to load: figures, plot, tables that sort.

use crate::cause;
use crate::compare::Report;
use crate::counters::compared;
use crate::plot::{escape, svg};
use crate::sets::Set;
use crate::text::{VOID, WORST, count, headline_text, is_void, percent, timed_sets};
use std::fmt::Write;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;width:100%;font-size:13px;margin:1em 0}th,td{padding:3px 8px;border-bottom:1px solid #e4e4e4;text-align:right}\
th{cursor:pointer;background:#f6f6f6;position:sticky;top:0}td.l,th.l{text-align:left}.bad{color:#b00020}.note{color:#666}\
svg{max-width:720px;width:100%;height:auto;display:block}.headline{font-size:1.3em}";

/// Sorts a table by the column whose head was clicked; numbers by their value.
const SCRIPT: &str = "document.querySelectorAll('th').forEach(h=>h.onclick=()=>{const t=h.closest('table'),i=[...h.parentNode.children].indexOf(h),\
b=t.tBodies[0],up=h.dataset.up=h.dataset.up==='1'?'':'1',v=r=>{const c=r.cells[i];if(!c)return 1e300;return c.dataset.v!==undefined?+c.dataset.v:c.textContent};\
[...b.rows].sort((x,y)=>{const a=v(x),c=v(y);return (a>c?1:a<c?-1:0)*(up?-1:1)}).forEach(r=>b.append(r))})";

/// The page; `provenance` says what the figures stand on.
pub fn html(report: &Report, provenance: &[(String, String)]) -> String {
    let title = format!("Lockstep against a real {}", report.gpu);
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{0}</title><style>{STYLE}</style><h1>{0}</h1>\n",
        escape(&title)
    );
    verdict(&mut page, report);
    page.push_str(&svg(report));
    worst(&mut page, report);
    counters(&mut page, report);
    programs(&mut page, report);
    kernels(&mut page, report);
    page.push_str("<h2>Where it comes from</h2><table><tbody>");
    for (key, value) in provenance {
        let _ = write!(
            page,
            "<tr><td class=\"l\">{}</td><td class=\"l\">{}</td></tr>",
            escape(key),
            escape(value)
        );
    }
    let _ = writeln!(page, "</tbody></table><script>{SCRIPT}</script></html>");
    page
}

fn verdict(page: &mut String, report: &Report) {
    let sets = timed_sets(report);
    let failures = report.failures();
    if failures.is_empty() {
        if let Some(headline) = report.headline(&sets, |_| true) {
            let _ = writeln!(
                page,
                "<p class=\"headline\">Mean error of cycles: <b>{}</b></p>",
                percent(headline.errors.mean)
            );
        }
    } else {
        let _ = writeln!(
            page,
            "<p class=\"headline bad\">No headline: {} of {} programs cannot be compared.</p><ul>",
            failures.len(),
            report.programs.len()
        );
        for (case, failure) in failures {
            let _ = writeln!(
                page,
                "<li><b>{}/{}</b> {}</li>",
                escape(&case.program),
                escape(&case.size),
                escape(&failure.to_string())
            );
        }
        page.push_str("</ul>");
    }
    page.push_str("<ul>");
    for set in sets {
        let Some(headline) = report.headline(&[set], |_| true) else {
            continue;
        };
        let (right, all) = report.small_kernels(&[set]);
        let _ = writeln!(
            page,
            "<li><b>{}</b>: {}. Kernels below 20,000 net cycles: {right} of {all} within 10 % or 400 cycles.",
            set.name(),
            escape(&headline_text(&headline))
        );
        if let Some(large) = report.headline(&[set], |kernel| !kernel.is_small()) {
            let _ = writeln!(page, " Larger kernels: {}.", escape(&headline_text(&large)));
        }
        page.push_str("</li>");
    }
    let exact = report.exact();
    let _ = writeln!(
        page,
        "</ul><p>Instruction counts: {} of {} launches whose hardware counts repeat are equal ({} launches in all).{}</p>",
        exact.equal,
        exact.repeating,
        exact.launches,
        exact
            .first_difference
            .map_or(String::new(), |first| format!(
                " First difference: {}.",
                escape(&first)
            ))
    );
}

fn head(page: &mut String, title: &str, columns: &[&str], left: usize) {
    let _ = write!(page, "<h2>{title}</h2><table><thead><tr>");
    for (index, column) in columns.iter().enumerate() {
        let _ = write!(
            page,
            "<th{}>{column}</th>",
            if index < left { " class=\"l\"" } else { "" }
        );
    }
    page.push_str("</tr></thead><tbody>\n");
}

fn number(page: &mut String, value: f64, shown: &str) {
    let sortable = if value.is_finite() { value } else { 1e300 };
    let _ = write!(page, "<td data-v=\"{sortable}\">{shown}</td>");
}

fn left(page: &mut String, text: &str) {
    let _ = write!(page, "<td class=\"l\">{}</td>", escape(text));
}

fn worst(page: &mut String, report: &Report) {
    head(
        page,
        "Worst kernels",
        &[
            "program",
            "kernel",
            "likely cause",
            "measured",
            "simulated",
            "error",
        ],
        3,
    );
    for (case, kernel) in report.worst(WORST) {
        let Some(pair) = kernel.cycles() else {
            continue;
        };
        page.push_str("<tr>");
        left(page, &format!("{}/{}", case.program, case.size));
        left(page, &kernel.name);
        left(page, &cause::likely(kernel));
        number(page, pair.hardware.median(), &count(pair.hardware.median()));
        number(page, pair.simulated, &count(pair.simulated));
        number(page, pair.error, &percent(pair.error));
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table>");
}

fn counters(page: &mut String, report: &Report) {
    head(
        page,
        "Counters",
        &[
            "counter",
            "what",
            "programs",
            "mean",
            "median",
            "90th percentile",
            "maximum",
            "by time",
        ],
        2,
    );
    let sets = timed_sets(report);
    for counter in compared() {
        page.push_str("<tr>");
        left(page, counter.name);
        left(page, counter.summary);
        match report.counter(&sets, counter, |_| true) {
            _ if is_void(report, counter.name) => {
                let _ = write!(page, "<td class=\"l bad\" colspan=\"6\">{VOID}</td>");
            }
            Some(summary) => {
                number(page, summary.count as f64, &summary.count.to_string());
                for value in [
                    summary.mean,
                    summary.median,
                    summary.ninetieth,
                    summary.maximum,
                    summary.time_weighted,
                ] {
                    number(page, value, &percent(value));
                }
            }
            None => {
                page.push_str("<td class=\"l note\" colspan=\"6\">not known on both sides</td>")
            }
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table>");
}

fn programs(page: &mut String, report: &Report) {
    head(
        page,
        "Programs",
        &[
            "program",
            "set",
            "kernels",
            "measured",
            "simulated",
            "error",
            "counts equal",
            "seconds to simulate",
        ],
        2,
    );
    for program in &report.programs {
        page.push_str("<tr>");
        left(
            page,
            &format!("{}/{}", program.case.program, program.case.size),
        );
        left(page, program.set.name());
        if let Some(failure) = &program.failure {
            let _ = writeln!(
                page,
                "<td class=\"l bad\" colspan=\"6\">{}</td></tr>",
                escape(&failure.to_string())
            );
            continue;
        }
        let sums = program.kernels.iter().filter_map(|kernel| kernel.cycles());
        let (hardware, simulated) = sums.fold((0.0, 0.0), |(h, s), pair| {
            (h + pair.hardware.median(), s + pair.simulated)
        });
        number(
            page,
            program.kernels.len() as f64,
            &program.kernels.len().to_string(),
        );
        number(page, hardware, &count(hardware));
        number(page, simulated, &count(simulated));
        match (program.set, program.error(|_| true)) {
            (Set::Untimed, _) => page.push_str("<td class=\"note\">untimed</td>"),
            (_, Some(error)) => number(page, error, &percent(error)),
            (_, None) => page.push_str("<td class=\"note\">unknown</td>"),
        }
        let exact = &program.exact;
        number(
            page,
            exact.equal as f64,
            &format!("{} of {}", exact.equal, exact.repeating),
        );
        number(page, program.seconds, &format!("{:.1}", program.seconds));
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table>");
}

fn kernels(page: &mut String, report: &Report) {
    head(
        page,
        "Kernels",
        &[
            "program",
            "kernel",
            "launches",
            "measured",
            "simulated",
            "error",
            "net a launch",
            "stratum",
        ],
        2,
    );
    for program in report.timed(&Set::ALL) {
        for kernel in &program.kernels {
            let Some(pair) = kernel.cycles() else {
                continue;
            };
            page.push_str("<tr>");
            left(
                page,
                &format!("{}/{}", program.case.program, program.case.size),
            );
            left(page, &kernel.name);
            number(page, kernel.launches as f64, &kernel.launches.to_string());
            number(page, pair.hardware.median(), &count(pair.hardware.median()));
            number(page, pair.simulated, &count(pair.simulated));
            number(page, pair.error, &percent(pair.error));
            number(page, kernel.net_cycles, &count(kernel.net_cycles));
            let stratum = match (kernel.is_small(), kernel.is_right()) {
                (false, _) => "large",
                (true, true) => "small, right",
                (true, false) => "small, off",
            };
            let _ = writeln!(page, "<td>{stratum}</td></tr>");
        }
    }
    page.push_str("</tbody></table>");
}
