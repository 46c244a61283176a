// Shape functions, maps, inverse maps and quadrature: kernels give the same as the host.

#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Geom/Elements/ElementMap.hpp"
#include "DNDS/Geom/Elements/ReferenceElement.hpp"

#include "Geom/Elements/ElementTypes.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace DNDS::Geom {
namespace {

struct NodesOfElement {
    ArrayView<const real, 3> nodes; ///< `maxElementNodes` for each element
    index element;
    DNDS_HOST_DEVICE Point operator()(int k) const {
        const real *node = nodes[maxElementNodes * element + k];
        return Point{node[0], node[1], node[2]};
    }
};

/// The volume of each element.
struct Measure {
    ArrayView<const int, 1> types;
    ArrayView<const real, 3> nodes; ///< `maxElementNodes` for each element
    QuadratureSetView rules;
    ArrayView<real, 2> results;

    DNDS_HOST_DEVICE void operator()(index i) const {
        const auto type = static_cast<ElementType>(types(i));
        const NodesOfElement nodeAt{nodes, i};
        const QuadratureView &rule = rules[elementLayout(type).shape];
        results(i, 0) = 0.0;
        for (index q = 0; q < rule.size(); q++)
            results(i, 0) += rule.weight(q) * mapPoint(shapeFunctions(type, rule.point(q)), nodeAt).measure();
    }
};

/// The distance by which the inverse map of each element misses a reference point.
struct Invert {
    ArrayView<const int, 1> types;
    ArrayView<const real, 3> nodes;
    ArrayView<real, 2> results;

    DNDS_HOST_DEVICE void operator()(index i) const {
        const auto type = static_cast<ElementType>(types(i));
        const NodesOfElement nodeAt{nodes, i};
        const Point at{0.2, 0.1, 0.3};
        const Point target = mapPoint(shapeFunctions(type, at), nodeAt).position;
        const InverseMap inverse = findReferencePoint(type, nodeAt, target);
        results(i, 1) = inverse.found() ? norm(inverse.reference - at) : 1.0;
    }
};

TEST(ElementKernel, GivesTheVolumesOfTheHost) {
    Array<int, 1> types;
    Array<real, 3> nodes;
    std::vector<ElementType> list;
    for (const ElementType type : test::shapedTypes)
        if (elementLayout(type).shape >= ReferenceShape::Pyramid)
            list.push_back(type);
    const auto count = static_cast<index>(list.size());
    types.setName("types");
    types.resize(count);
    nodes.setName("nodes");
    nodes.resize(maxElementNodes * count);
    for (index i = 0; i < count; i++) {
        types(i, 0) = static_cast<int>(list[toSize(i)]);
        const std::vector<Point> at = test::referenceNodes(list[toSize(i)]);
        for (std::size_t k = 0; k < at.size(); k++) {
            const index row = maxElementNodes * i + static_cast<index>(k);
            nodes(row, 0) = 2.0 * at[k][0] + 0.1 * at[k][1] * at[k][1];
            nodes(row, 1) = at[k][1];
            nodes(row, 2) = at[k][2] + 0.2 * at[k][0] * at[k][1];
        }
    }
    QuadratureSet rules(5);
    Array<real, 2> results;
    results.setName("results");
    results.resize(count);
    parallelFor(Executor::host(), count,
                Measure{std::as_const(types).view(), std::as_const(nodes).view(), rules.view(), results.view()});
    parallelFor(Executor::host(), count,
                Invert{std::as_const(types).view(), std::as_const(nodes).view(), results.view()});
    for (index i = 0; i < count; i++) {
        const ElementLayout layout = elementLayout(list[toSize(i)]);
        if (layout.order == 2) {
            EXPECT_NEAR(results(i, 0), 2.0 * referenceMeasure(layout.shape), 1e-13) << "row " << i;
        }
        EXPECT_NEAR(results(i, 1), 0.0, 1e-12) << "row " << i;
    }

    if (!Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const Array<real, 2> expected = results;
    const Device::Stream stream;
    types.toDevice(stream);
    nodes.toDevice(stream);
    results.toDevice(stream);
    rules.toDevice();
    constexpr DeviceBackend device = DeviceBackend::CUDA;
    parallelFor(Executor::device(stream), count,
                Measure{std::as_const(types).deviceView<device>(), std::as_const(nodes).deviceView<device>(),
                        rules.view<device>(), results.deviceView<device>()});
    parallelFor(Executor::device(stream), count,
                Invert{std::as_const(types).deviceView<device>(), std::as_const(nodes).deviceView<device>(),
                       results.deviceView<device>()});
    results.toHost(stream);
    Executor::device(stream).synchronize();
    for (index i = 0; i < count; i++) {
        EXPECT_NEAR(results(i, 0), expected(i, 0), 1e-14) << "row " << i;
        EXPECT_NEAR(results(i, 1), 0.0, 1e-12) << "row " << i;
    }
}

} // namespace
} // namespace DNDS::Geom
