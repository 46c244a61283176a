#include "DNDS/Blocks/Box.hpp"

#include <cstdlib>

namespace DNDS {

// An IndexTransform is a signed permutation of the dimensions and a shift: other[axis[d]] = sign[d] cell[d] +
// offset[axis[d]]. Such maps are closed under `inverse` and `then`, O(dims) each and exact in integers, so chains of
// connections need no rounding and can be compared with ==.
IndexTransform IndexTransform::ofVertices(std::span<const int> transform, const IndexVector &begin,
                                          const IndexVector &otherBegin) {
    DNDS_CHECK(!transform.empty() && transform.size() <= maxBlockDims, ArgumentError,
               "a transform of {} entries: give one a dimension, 1 to {}", transform.size(), maxBlockDims);
    IndexTransform made;
    made.dims = static_cast<int>(transform.size());
    std::array<bool, maxBlockDims> taken{};
    for (std::size_t d = 0; d < transform.size(); ++d) {
        const int axis = std::abs(transform[d]) - 1;
        DNDS_CHECK(axis >= 0 && axis < made.dims && !taken[toSize(axis)], ArgumentError,
                   "entry {} of the transform is {}: name each dimension from 1 to {} once, with a sign", d,
                   transform[d], made.dims);
        taken[toSize(axis)] = true;
        made.axis[d] = axis;
        made.sign[d] = transform[d] > 0 ? 1 : -1;
        // A mirrored cell lies below the image of its lower vertex.
        made.offset[toSize(axis)] = otherBegin[toSize(axis)] - made.sign[d] * begin[d] - (made.sign[d] < 0 ? 1 : 0);
    }
    return made;
}

// Node c is the lower end of cell c. Where cells are mirrored, c to o - c, the lower end of a cell becomes the upper
// end of its image: node c goes to o - c + 1.
IndexTransform IndexTransform::ofPoints(const Centring &centring) const noexcept {
    IndexTransform points = *this;
    for (int d = 0; d < dims; ++d)
        if (centring.nodal[toSize(d)] && sign[toSize(d)] < 0)
            ++points.offset[toSize(axis[toSize(d)])];
    return points;
}

bool IndexTransform::mapsToItself(const Centring &centring) const noexcept {
    for (int d = 0; d < dims; ++d)
        if (centring.nodal[toSize(d)] != centring.nodal[toSize(axis[toSize(d)])])
            return false;
    return true;
}

// Mirroring swaps the ends: cell c becomes o - c, and so [l, u) becomes [o - u + 1, o - l + 1).
Box IndexTransform::operator()(const Box &box) const noexcept {
    Box other(dims, {}, {});
    for (int d = 0; d < dims; ++d) {
        const std::size_t k = toSize(d);
        const std::size_t a = toSize(axis[k]);
        const bool forwards = sign[k] > 0;
        other.lower[a] = offset[a] + (forwards ? box.lower[k] : 1 - box.upper[k]);
        other.upper[a] = offset[a] + (forwards ? box.upper[k] : 1 - box.lower[k]);
    }
    return other;
}

// Solves other = sign * cell + offset for the cell; 1 / sign is sign.
IndexTransform IndexTransform::inverse() const noexcept {
    IndexTransform back;
    back.dims = dims;
    for (int d = 0; d < dims; ++d) {
        const std::size_t k = toSize(d);
        const std::size_t a = toSize(axis[k]);
        back.axis[a] = d;
        back.sign[a] = sign[k];
        back.offset[k] = -sign[k] * offset[a];
    }
    return back;
}

// The composition, `next` after this one: in each dimension next.sign (sign cell + offset) + next.offset.
IndexTransform IndexTransform::then(const IndexTransform &next) const noexcept {
    IndexTransform both;
    both.dims = dims;
    for (int d = 0; d < dims; ++d) {
        const std::size_t k = toSize(d);
        const std::size_t a = toSize(axis[k]);
        const std::size_t b = toSize(next.axis[a]);
        both.axis[k] = next.axis[a];
        both.sign[k] = sign[k] * next.sign[a];
        both.offset[b] = next.sign[a] * offset[a] + next.offset[b];
    }
    return both;
}

} // namespace DNDS
