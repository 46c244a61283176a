#include "DNDS/Device/Algorithms.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/AlgorithmHooks.hpp"

namespace DNDS::Device {

real sum(StreamHandle stream, std::span<const real> x) {
    requireDevice("add up elements");
    return x.empty() ? 0.0 : Hooks::sum(stream, x);
}

void exclusiveScan(StreamHandle stream, std::span<const index> counts, std::span<index> starts) {
    requireDevice("make offsets");
    DNDS_CHECK(counts.size() == starts.size(), ArgumentError, "{} counts do not make {} starts", counts.size(),
               starts.size());
    if (!counts.empty())
        Hooks::exclusiveScan(stream, counts, starts);
}

void sortByKey(StreamHandle stream, std::span<index> keys, std::span<index> values) {
    requireDevice("sort");
    DNDS_CHECK(keys.size() == values.size(), ArgumentError, "{} keys cannot sort {} values", keys.size(),
               values.size());
    if (!keys.empty())
        Hooks::sortByKey(stream, keys, values);
}

void multiply(StreamHandle stream, real alpha, const MatrixRows<const real> &a, const MatrixRows<const real> &b,
              real beta, const MatrixRows<real> &c) {
    requireDevice("multiply matrices");
    DNDS_CHECK(a.count == c.count && b.count == c.count, ArgumentError, "{} and {} matrices do not make {} products",
               a.count, b.count, c.count);
    if (c.count == 0)
        return;
    DNDS_CHECK(a.rows == c.rows && a.cols == b.rows && b.cols == c.cols, ArgumentError,
               "matrices of {} x {} and {} x {} do not make products of {} x {}", a.rows, a.cols, b.rows, b.cols,
               c.rows, c.cols);
    if (c.rows > 0 && c.cols > 0)
        Hooks::multiply(stream, alpha, a, b, beta, c);
}

} // namespace DNDS::Device
