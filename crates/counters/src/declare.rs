//! The macro behind the table.

/// Declares the counters of a launch: a struct with a field for each, and [`Metric`](crate::Metric)s
/// in the same order. After the plain counters come arrays, whose elements the model finds by number.
macro_rules! counters {
    (
        $(
            $(#[doc = $help:literal])+
            $name:ident = $metric:expr;
        )+
        $(
            [$array:ident; $count:ident: $about:literal] {
                $(
                    $(#[doc = $item_help:literal])+
                    $item:ident = $item_metric:expr;
                )+
            }
        )*
    ) => {
        /// All counters of a launch; the order is the order of columns and of the documentation.
        pub const COUNTERS: &[Metric] = &[
            $($metric.named(stringify!($name), concat!($($help),+).trim_ascii()),)+
            $($($item_metric.named(stringify!($item), concat!($($item_help),+).trim_ascii()),)+)*
        ];

        $(
            #[doc = concat!("Elements of `", stringify!($array), "`.")]
            pub const $count: usize = [$(stringify!($item)),+].len();
        )*

        /// What was counted: by a block, by an SM over all its blocks, for a launch. All of them are
        /// sums, so no order can show.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Counters {
            $(
                $(#[doc = $help])+
                pub $name: u64,
            )+
            $(
                #[doc = $about]
                pub $array: [u64; $count],
            )*
        }

        impl Counters {
            /// Adds another sum.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)+
                $(
                    for (sum, more) in self.$array.iter_mut().zip(other.$array) {
                        *sum += more;
                    }
                )*
            }

            /// What was counted since an earlier sum was taken.
            #[must_use]
            pub fn minus(&self, earlier: &Self) -> Self {
                let mut left = *self;
                $(left.$name -= earlier.$name;)+
                $(
                    for (left, less) in left.$array.iter_mut().zip(earlier.$array) {
                        *left -= less;
                    }
                )*
                left
            }

            /// All values, in the order of [`COUNTERS`].
            pub fn values(&self) -> [u64; COUNTERS.len()] {
                let mut all = [0; COUNTERS.len()];
                let plain = [$(self.$name),+];
                let (first, _rest) = all.split_at_mut(plain.len());
                first.copy_from_slice(&plain);
                $(
                    let (first, _rest) = _rest.split_at_mut(self.$array.len());
                    first.copy_from_slice(&self.$array);
                )*
                all
            }
        }
    };
}
pub(crate) use counters;
