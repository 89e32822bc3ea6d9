//! Counters, histograms and time series: declared once, merged in fixed order, digested.
