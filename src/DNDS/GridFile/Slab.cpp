#include "DNDS/GridFile/Slab.hpp"

#include "DNDS/Base/Error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace DNDS {

// Products are computed with overflow checks: the counts may be anything. Throws on this rank alone; callers agree.
// `start <= shape` is tested before the difference, which cannot overflow then.
void checkSlab(const WrittenSlab &slab, const std::vector<index> &shape, const std::string &what, ElementKind kind) {
    const std::size_t dims = shape.size();
    DNDS_CHECK(slab.start.size() == dims && slab.count.size() == dims, LayoutError,
               "{} has {} dimensions ({}), but a box of {} starts and {} counts is given", what, dims,
               fmt::join(shape, " x "), slab.start.size(), slab.count.size());
    DNDS_CHECK(slab.strides.empty() || slab.strides.size() == dims, LayoutError,
               "{} has {} dimensions, but {} strides of memory are given", what, dims, slab.strides.size());
    for (std::size_t d = 0; d < dims; d++)
        DNDS_CHECK(slab.start[d] >= 0 && slab.count[d] >= 0 && slab.start[d] <= shape[d] &&
                       slab.count[d] <= shape[d] - slab.start[d],
                   LayoutError, "{} has {} elements, but a box of {} elements from {} is given", what,
                   fmt::join(shape, " x "), fmt::join(slab.count, " x "), fmt::join(slab.start, ", "));
    index elements = 1;
    bool tooMany = false;
    for (const index n : slab.count)
        tooMany = __builtin_mul_overflow(elements, n, &elements) || tooMany;
    DNDS_CHECK(!tooMany || std::ranges::count(slab.count, 0) > 0, LayoutError,
               "{}: a box of {} elements is more than memory can hold", what, fmt::join(slab.count, " x "));
    DNDS_CHECK(slab.elements() == 0 || slab.data != nullptr, ArgumentError, "{}: a box of {} elements has no memory",
               what, fmt::join(slab.count, " x "));
    DNDS_CHECK(kind == ElementKind::Opaque || slab.kind == kind, LayoutError, "{} holds {}, but memory is {}", what,
               elementKindName(kind), elementKindName(slab.kind));
}

} // namespace DNDS
