#include "DNDS/Blocks/Box.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace DNDS::test {
namespace {

/// All signed permutations of the dimensions: 2, 8, 48, 384.
std::vector<std::vector<int>> orientations(int dims) {
    std::vector<int> axes;
    for (int d = 1; d <= dims; ++d)
        axes.push_back(d);
    std::vector<std::vector<int>> all;
    do {
        for (int signs = 0; signs < 1 << dims; ++signs) {
            all.push_back(axes);
            for (int d = 0; d < dims; ++d)
                if ((signs >> d & 1) != 0)
                    all.back()[toSize(d)] *= -1;
        }
    } while (std::ranges::next_permutation(axes).found);
    return all;
}

/// The definition: T(v - begin) + otherBegin, by CGNS's matrix T.
IndexVector vertex(const std::vector<int> &transform, const IndexVector &begin, const IndexVector &otherBegin,
                   const IndexVector &v) {
    IndexVector other = otherBegin;
    for (std::size_t d = 0; d < transform.size(); ++d)
        other[toSize(std::abs(transform[d]) - 1)] += (transform[d] > 0 ? 1 : -1) * (v[d] - begin[d]);
    return other;
}

TEST(IndexTransform, CellsLieBetweenTheImagesOfTheirVertices) {
    const IndexVector begin{3, 5, 7, 11};
    const IndexVector otherBegin{-2, 4, 9, 1};
    for (int dims = 1; dims <= maxBlockDims; ++dims) {
        const auto all = orientations(dims);
        ASSERT_EQ(all.size(), (std::vector<std::size_t>{2, 8, 48, 384})[toSize(dims - 1)]);
        for (const auto &transform : all) {
            const IndexTransform cells = IndexTransform::ofVertices(transform, begin, otherBegin);
            for (const IndexVector cell : {IndexVector{3, 5, 7, 11}, IndexVector{0, -1, 8, 20}}) {
                IndexVector low{};
                IndexVector above{};
                for (std::size_t d = 0; d < toSize(dims); ++d) {
                    low[d] = cell[d];
                    above[d] = cell[d] + 1;
                }
                const IndexVector a = vertex(transform, begin, otherBegin, low);
                const IndexVector b = vertex(transform, begin, otherBegin, above);
                for (std::size_t d = 0; d < toSize(dims); ++d)
                    EXPECT_EQ(cells(cell)[d], std::min(a[d], b[d]));
                EXPECT_EQ(cells.inverse()(cells(cell)), low);
            }
        }
    }
}

TEST(IndexTransform, BoxesAreThoseOfTheirCells) {
    const Box box({1, -2, 3}, {4, 5, 5});
    for (const auto &transform : orientations(3)) {
        const IndexTransform cells = IndexTransform::ofVertices(transform, {0, 1, 2}, {9, 8, 7});
        const Box other = cells(box);
        EXPECT_EQ(other.size(), box.size());
        forEachCell(box, [&](const IndexVector &cell) { EXPECT_TRUE(other.contains(cells(cell))); });
        EXPECT_EQ(cells.inverse()(other), box);
    }
}

TEST(IndexTransform, OneAfterTheOther) {
    const auto all = orientations(3);
    for (const auto &first : all)
        for (const auto &second : {all[5], all[17], all[40]}) {
            const IndexTransform a = IndexTransform::ofVertices(first, {0, 1, 2}, {9, 8, 7});
            const IndexTransform b = IndexTransform::ofVertices(second, {4, 1, 1}, {0, -3, 2});
            EXPECT_EQ(a.then(b)({5, 6, 7}), b(a({5, 6, 7})));
            EXPECT_EQ(a.then(a.inverse()), IndexTransform::translation(3, {}));
        }
}

TEST(IndexTransform, RefusesWhatIsNoOrientation) {
    EXPECT_THROW(IndexTransform::ofVertices(std::vector<int>{1, 1, 2}, {}, {}), ArgumentError);
    EXPECT_THROW(IndexTransform::ofVertices(std::vector<int>{1, 4, 2}, {}, {}), ArgumentError);
    EXPECT_THROW(IndexTransform::ofVertices(std::vector<int>{1, 0, 2}, {}, {}), ArgumentError);
    EXPECT_THROW(IndexTransform::ofVertices(std::vector<int>{}, {}, {}), ArgumentError);
}

} // namespace
} // namespace DNDS::test
