#include "DNDS/Blocks/CutBox.hpp"

#include <cstdint>
#include <numeric>

namespace DNDS {

namespace {

constexpr double cacheLineBytes = 64;

/// The cost of a cut in cache lines: those of the ghosts of the largest part, and of its cells in excess of the average
/// part, for which the other ranks wait. Ghosts beyond a face normal to dimension d are runs of the later dimensions'
/// extents: one run for the first dimension, a run per line of cells for the last. O(1).
/// A model of the slowest rank, not of the total: a step takes as long as its largest part.
double linesMoved(const Box &cells, const std::array<bool, maxBlockDims> &periodic, const IndexVector &parts,
                  const CutOptions &options) {
    const auto bytes = static_cast<double>(options.cellBytes);
    const int dims = cells.dims;
    IndexVector extents{};
    double largest = 1;
    double average = 1;
    for (int d = 0; d < dims; ++d) {
        const std::size_t k = toSize(d);
        extents[k] = (cells.extent(d) + parts[k] - 1) / parts[k];
        largest *= static_cast<double>(extents[k]);
        average *= static_cast<double>(cells.extent(d)) / static_cast<double>(parts[k]);
    }
    double lines = (largest - average) * bytes / cacheLineBytes;
    for (int d = 0; d < dims; ++d) {
        const std::size_t k = toSize(d);
        if (parts[k] == 1)
            continue;
        double runs = 1;
        double cellsARun = 1;
        for (int e = 0; e < dims; ++e)
            (e < d ? runs : cellsARun) *= e == d ? 1 : static_cast<double>(extents[toSize(e)]);
        const bool bothSides = parts[k] > 2 || periodic[k];
        const index low = options.ghosts.low[k], high = options.ghosts.high[k];
        for (const index width : {bothSides ? low : std::max(low, high), bothSides ? high : index{0}})
            if (width > 0) // a run that does not start at a line touches one line more than it fills
                lines += runs * (static_cast<double>(width) * cellsARun * bytes / cacheLineBytes + (d == 0 ? 0 : 1));
    }
    return lines;
}

/// Tries all factorizations of a number of parts, dimension by dimension. Ordered factorizations into at most 4 factors
/// are few: some thousands for thousands of ranks.
struct PartsSearch {
    const Box &cells;
    const std::array<bool, maxBlockDims> &periodic;
    const CutOptions &options;
    const IndexVector &wanted; ///< parts per dimension, or -1
    IndexVector best{};
    double cost = -1; ///< cost of `best`; negative: no cut was found yet

    /// Sets the parts of dimensions from `d` on, whose product must be `left`.
    void fill(IndexVector &parts, int d, index left) {
        if (d == cells.dims || d == maxBlockDims) {
            if (left != 1)
                return;
            const double lines = linesMoved(cells, periodic, parts, options);
            if (cost < 0 || lines < cost) {
                cost = lines;
                best = parts;
            }
            return;
        }
        const std::size_t k = toSize(d);
        const auto tryPart = [&](index part) {
            parts[k] = part;
            fill(parts, d + 1, left / part);
        };
        if (wanted[k] != -1) {
            parts[k] = wanted[k];
            fill(parts, d + 1, left); // chosen parts alone divide `left`
            return;
        }
        // Tries many parts first, so that among equally cheap cuts the one of the slowest dimension wins.
        for (index part = std::min(left, std::max<index>(1, cells.extent(d))); part >= 1; --part)
            if (left % part == 0)
                tryPart(part);
    }
};

/// The parts that the options name, 1 in unused dimensions, -1 where the search chooses. Throws ArgumentError.
IndexVector wantedParts(const Box &cells, const CutOptions &options, int ranks) {
    IndexVector wanted{1, 1, 1, 1};
    DNDS_CHECK(options.parts.empty() || options.parts.size() == toSize(cells.dims), ArgumentError,
               "parts are given for {} dimensions of {}: give one number each, or none for the best",
               options.parts.size(), cells.dims);
    index product = 1;
    for (int d = 0; d < cells.dims; ++d) {
        const std::size_t k = toSize(d);
        const index asked = options.parts.empty() ? -1 : options.parts[k];
        DNDS_CHECK(asked >= -1, ArgumentError,
                   "{} parts in dimension {}: give 1 or more, 0 not to cut, -1 for the best", asked, d);
        wanted[k] = asked == 0 ? 1 : asked;
        DNDS_CHECK(asked <= 1 || asked <= cells.extent(d), ArgumentError,
                   "{} parts in dimension {}, which has {} cells: give each part a cell at least", asked, d,
                   cells.extent(d));
        product *= asked > 1 ? asked : 1;
        DNDS_CHECK(product <= ranks, ArgumentError, "the parts are more than the {} ranks: cut less", ranks);
    }
    return wanted;
}

/// The position of a cell on the Hilbert curve in `dims` dimensions of 2^bits cells, highest bits first. O(bits dims).
/// Method: Skilling, Programming the Hilbert curve, AIP Conference Proceedings 707, 2004: undoes the rotations of all
/// levels, Gray-encodes, and interleaves the bits. Unlike `hilbertNumber` of meshes, for 1 to 4 dimensions.
std::array<std::uint64_t, maxBlockDims> curveKey(const IndexVector &cell, int dims, int bits) {
    std::array<std::uint64_t, maxBlockDims> x{};
    const std::size_t n = toSize(dims);
    for (std::size_t d = 0; d < n; ++d)
        x[d] = static_cast<std::uint64_t>(cell[d]);
    const std::uint64_t top = std::uint64_t{1} << (bits - 1);
    for (std::uint64_t q = top; q > 1; q >>= 1)
        for (std::size_t d = 0; d < n; ++d) {
            const std::uint64_t swap = (x[d] & q) != 0 ? 0 : (x[0] ^ x[d]) & (q - 1);
            x[0] ^= (x[d] & q) != 0 ? q - 1 : swap;
            x[d] ^= swap;
        }
    for (std::size_t d = 1; d < n; ++d)
        x[d] ^= x[d - 1];
    std::uint64_t flip = 0;
    for (std::uint64_t q = top; q > 1; q >>= 1)
        if ((x[n - 1] & q) != 0)
            flip ^= q - 1;
    std::array<std::uint64_t, maxBlockDims> key{};
    for (std::size_t d = 0; d < n; ++d)
        x[d] ^= flip;
    std::size_t place = (key.size() * 64) - (static_cast<std::size_t>(bits) * n); // numbers end with the last bit
    for (int bit = bits - 1; bit >= 0; --bit)
        for (std::size_t d = 0; d < n; ++d, ++place)
            key[place / 64] |= ((x[d] >> bit) & 1) << (63 - place % 64);
    return key;
}

} // namespace

// Tries all factorizations of the number of free parts over the dimensions, which are few, and takes the cheapest. If
// no factorization fits the box, tries one part less; a single part always fits, so the search ends.
// Deterministic: all ranks search in the same order and keep the first of equally cheap cuts, so they agree without
// messages. The model counts moved cache lines, the traffic of a halo exchange, in place of the surface in cells.
PartsChoice chooseParts(const Box &cells, const std::array<bool, maxBlockDims> &periodic, int ranks,
                        const CutOptions &options) {
    DNDS_CHECK(ranks >= 1, ArgumentError, "a box cannot be cut for {} ranks", ranks);
    const IndexVector wanted = wantedParts(cells, options, ranks);
    index given = 1;
    bool free = false;
    for (const index parts : wanted) {
        given *= parts > 1 ? parts : 1;
        free = free || parts == -1;
    }
    PartsSearch search{.cells = cells, .periodic = periodic, .options = options, .wanted = wanted};
    for (index sought = free ? ranks / given : 1; sought >= 1 && search.cost < 0; --sought) {
        IndexVector parts{1, 1, 1, 1};
        search.fill(parts, 0, sought);
    }
    PartsChoice choice{.parts = search.best, .why = {}};
    std::string shape;
    for (int d = 0; d < cells.dims; ++d)
        shape += fmt::format("{}{}", d > 0 ? " x " : "", choice.parts[toSize(d)]);
    choice.why =
        fmt::format("{} parts, {} (cost: {:.0f} cache lines)", shape, free ? "the best cut" : "as given", search.cost);
    if (choice.count() < ranks)
        choice.why += fmt::format("; {} of {} ranks have no part", ranks - choice.count(), ranks);
    return choice;
}

Box partOf(const Box &cells, const IndexVector &parts, const IndexVector &part) {
    Box mine = cells;
    for (int d = 0; d < cells.dims; ++d) {
        const std::size_t k = toSize(d);
        const index each = cells.extent(d) / parts[k];
        const index larger = cells.extent(d) % parts[k]; // the first parts have one cell more
        mine.lower[k] = cells.lower[k] + each * part[k] + std::min(part[k], larger);
        mine.upper[k] = mine.lower[k] + each + (part[k] < larger ? 1 : 0);
    }
    return mine;
}

// The curve fills a cube of 2^bits cells a side; cells of the cube outside the box are skipped, where the order has
// jumps. Memory: 40 bytes a cell, while it runs.
// Keys are distinct, so the order is the same for any sorting algorithm.
std::vector<index> curveOrder(const Box &shape) {
    int bits = 1;
    for (int d = 0; d < shape.dims; ++d)
        while (shape.extent(d) > index{1} << bits)
            ++bits;
    std::vector<std::array<std::uint64_t, maxBlockDims>> keys;
    keys.reserve(toSize(shape.size()));
    IndexVector toOrigin{};
    for (int d = 0; d < shape.dims; ++d)
        toOrigin[toSize(d)] = -shape.lower[toSize(d)];
    forEachCell(shape.shift(toOrigin),
                [&](const IndexVector &cell) { keys.push_back(curveKey(cell, shape.dims, bits)); });
    std::vector<index> order(keys.size());
    std::iota(order.begin(), order.end(), index{0});
    std::ranges::sort(order, {}, [&](index cell) { return keys[toSize(cell)]; });
    return order;
}

} // namespace DNDS
