#include "Conduction.hpp"

#include "DNDS/Linear/BlockJacobi.hpp"

#include <Eigen/Dense>

#include <array>
#include <cmath>
#include <utility>

namespace Poisson {

using namespace DNDS;
using Geom::ElementType;
using Geom::UnstructuredMesh;

namespace {

using Corners = std::array<int, 4>;

/// The simplices that a cell is cut into. Cells with quadrilaterals are cut twice, along either diagonal of each, and
/// both count half: so neighbours agree on their common face, and the elements are exact for linear temperatures.
std::span<const Corners> simplicesOf(ElementType type) {
    static constexpr std::array<Corners, 1> triangle{{{0, 1, 2}}};
    static constexpr std::array<Corners, 4> quadrilateral{{{0, 1, 2}, {0, 2, 3}, {0, 1, 3}, {1, 2, 3}}};
    static constexpr std::array<Corners, 1> tetrahedron{{{0, 1, 2, 3}}};
    static constexpr std::array<Corners, 4> pyramid{{{0, 1, 2, 4}, {0, 2, 3, 4}, {0, 1, 3, 4}, {1, 2, 3, 4}}};
    static constexpr std::array<Corners, 6> prism{
        {{0, 1, 2, 5}, {0, 1, 4, 5}, {0, 3, 4, 5}, {2, 1, 0, 3}, {2, 1, 4, 3}, {2, 5, 4, 3}}};
    static constexpr std::array<Corners, 10> hexahedron{{{0, 2, 5, 7},
                                                         {1, 0, 2, 5},
                                                         {3, 0, 2, 7},
                                                         {4, 0, 5, 7},
                                                         {6, 2, 5, 7},
                                                         {1, 3, 4, 6},
                                                         {0, 1, 3, 4},
                                                         {2, 1, 3, 6},
                                                         {5, 1, 4, 6},
                                                         {7, 3, 4, 6}}};
    switch (type) {
    case ElementType::Tri3:
        return triangle;
    case ElementType::Quad4:
        return quadrilateral;
    case ElementType::Tetra4:
        return tetrahedron;
    case ElementType::Pyra5:
        return pyramid;
    case ElementType::Penta6:
        return prism;
    case ElementType::Hexa8:
        return hexahedron;
    default:
        throw ArgumentError(
            fmt::format("conduction needs linear cells, and this mesh has {}: convert it, or cut its cells",
                        Geom::elementInfo(type).name));
    }
}

/// A cell: products of the gradients of its nodes' functions, and each node's share of its volume.
struct Element {
    std::vector<real> stiffness; ///< [nodes x nodes]
    std::vector<real> volumes;   ///< [nodes]
};

Element elementOf(ElementType type, int dimension, std::span<const Eigen::Vector3d> points) {
    const std::size_t nodes = points.size();
    Element element{std::vector<real>(nodes * nodes), std::vector<real>(nodes)};
    const std::span<const Corners> simplices = simplicesOf(type);
    const bool twice = type != ElementType::Tri3 && type != ElementType::Tetra4;
    const auto corners = static_cast<std::size_t>(dimension) + 1;
    for (const Corners &simplex : simplices) {
        Eigen::MatrixXd edges(3, dimension);
        for (std::size_t k = 1; k < corners; ++k)
            edges.col(static_cast<Eigen::Index>(k) - 1) = points[toSize(simplex.at(k))] - points[toSize(simplex[0])];
        const Eigen::MatrixXd metric = edges.transpose() * edges;
        const real volume = std::sqrt(metric.determinant()) / (dimension == 3 ? 6 : 2) * (twice ? 0.5 : 1);
        // Gradients of the functions that are 1 in a corner and 0 in the others.
        Eigen::MatrixXd gradients(3, dimension + 1);
        gradients.rightCols(dimension) = edges * metric.inverse();
        gradients.col(0) = -gradients.rightCols(dimension).rowwise().sum();
        const Eigen::MatrixXd products = volume * gradients.transpose() * gradients;
        for (std::size_t i = 0; i < corners; ++i) {
            const auto row = toSize(simplex.at(i));
            element.volumes[row] += volume / static_cast<real>(corners);
            for (std::size_t j = 0; j < corners; ++j)
                element.stiffness[row * nodes + toSize(simplex.at(j))] +=
                    products(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
        }
    }
    return element;
}

Position positionOf(const UnstructuredMesh &mesh, index node) { return Position(mesh.coordinates.view()[node], 3); }

/// All nodes of the cells around each own node.
MatrixPattern::Neighbours neighboursOf(const UnstructuredMesh &mesh) {
    const auto cellNodes = mesh.cellNodes.view();
    const auto nodeCells = mesh.nodeCells.view();
    MatrixPattern::Neighbours lists("nodes of cells of nodes", mesh.comm);
    lists.resize(mesh.nodes.owned, [&](index node) {
        rowsize width = 0;
        for (const LocalIndex cell : nodeCells[node])
            width += cellNodes[cell].size();
        return width;
    });
    for (index node = 0; node < mesh.nodes.owned; ++node) {
        auto to = lists[node].begin();
        for (const LocalIndex cell : nodeCells[node])
            to = std::ranges::copy(cellNodes[cell], to).out;
    }
    return lists;
}

} // namespace

KrylovResult solveByDnds(const SparseMatrix<> &a, const Temperature &right, Temperature &x,
                         const KrylovOptions &options) {
    return conjugateGradients([&](Temperature &d, Temperature &y) { a.multiply(d, y); }, right, x, BlockJacobi<1>(a),
                              options);
}

Conduction::Conduction(const UnstructuredMesh &mesh, Material material, const std::map<std::string, Function> &fixed)
    : mesh_(mesh), material_(std::move(material)) {
    mesh.comm.guarded([&] {
        DNDS_CHECK(mesh.periodic.empty(), ArgumentError, "conduction does not join the nodes of periodic boundaries");
    });
    std::unique_ptr<MatrixPattern::Neighbours> lists;
    mesh.comm.guarded([&] { lists = std::make_unique<MatrixPattern::Neighbours>(neighboursOf(mesh)); });
    pattern_ = MatrixPattern::create("nodes", mesh.nodes.pattern, *lists);
    stiffness_ = std::make_unique<SparseMatrix<>>("stiffness", pattern_);
    mesh.comm.guarded([&] { assemble(); });
    fixTemperatures(fixed);
}

void Conduction::assemble() {
    const auto cellNodes = mesh_.cellNodes.view();
    const auto nodeCells = mesh_.nodeCells.view();
    std::vector<Element> elements(toSize(mesh_.cells.size()));
    std::vector<Eigen::Vector3d> points;
    for (index cell = 0; cell < mesh_.cells.size(); ++cell) {
        points.clear();
        for (const LocalIndex node : cellNodes[cell])
            points.emplace_back(positionOf(mesh_, node).data());
        elements[toSize(cell)] = elementOf(mesh_.cellTypes[toSize(cell)], mesh_.dimension, points);
    }
    for (index node = 0; node < mesh_.nodes.owned; ++node) {
        real volume = 0;
        for (const LocalIndex cell : nodeCells[node]) {
            const auto nodes = cellNodes[cell];
            const auto size = toSize(nodes.size());
            const auto row = toSize(std::ranges::find(nodes, static_cast<LocalIndex>(node)) - nodes.begin());
            const Element &element = elements[toSize(cell)];
            volume += element.volumes[row];
            for (std::size_t k = 0; k < size; ++k)
                stiffness_->add(node, nodes[static_cast<rowsize>(k)],
                                material_.conductivity * element.stiffness[row * size + k]);
        }
        volumes_.push_back(volume);
        heat_.push_back(material_.source ? volume * material_.source(positionOf(mesh_, node)) : 0);
    }
}

void Conduction::fixTemperatures(const std::map<std::string, Function> &fixed) {
    fixed_ = mesh_.nodes.field<Temperature>("temperature");
    fixedPatch_ = mesh_.nodes.field<1, int>("fixed patch");
    mesh_.comm.guarded([&] {
        for (index node = 0; node < mesh_.nodes.owned; ++node)
            (*fixedPatch_.father)(node, 0) = -1;
        const auto faceNodes = mesh_.faceNodes.view();
        for (const auto &[name, temperature] : fixed) {
            for (const LocalIndex face : mesh_.patch(name).faces)
                for (const LocalIndex node : faceNodes[face])
                    if (node < mesh_.nodes.owned && (*fixedPatch_.father)(node, 0) < 0) {
                        (*fixedPatch_.father)(node, 0) = static_cast<int>(names_.size());
                        (*fixed_.father)(node, 0) = temperature(positionOf(mesh_, node));
                    }
            names_.push_back(name);
        }
    });
    fixed_.trans.pullOnce();
    fixedPatch_.trans.pullOnce();
}

Temperature Conduction::start() const {
    Temperature t;
    t.clone(fixed_);
    t.trans.initPersistentPull();
    return t;
}

SparseMatrix<> Conduction::systemOf(real massPerTime) const {
    SparseMatrix<> system("conduction", pattern_);
    const auto isFixed = fixedPatch_.view();
    for (index node = 0; node < mesh_.nodes.owned; ++node)
        for (const LocalIndex other : pattern_->columns(node)) {
            const std::size_t at = pattern_->find(node, other);
            if (isFixed(node, 0) >= 0 || isFixed(other, 0) >= 0)
                system.at(at)(0, 0) = node == other ? 1 : 0;
            else
                system.at(at)(0, 0) =
                    stiffness_->at(at)(0, 0) + (node == other ? massPerTime * volumes_[toSize(node)] : 0);
        }
    return system;
}

KrylovResult Conduction::solve(Temperature &t, real massPerTime, const KrylovOptions &options) {
    // Contributions of fixed temperatures to other rows go to the right-hand side.
    Temperature fixed = start();
    Temperature right = start();
    stiffness_->multiply(fixed, right);
    for (index node = 0; node < mesh_.nodes.owned; ++node) {
        const bool isFixed = (*fixedPatch_.father)(node, 0) >= 0;
        const auto k = toSize(node);
        (*right.father)(node, 0) =
            isFixed ? (*fixed_.father)(node, 0)
                    : heat_[k] + massPerTime * volumes_[k] * (*t.father)(node, 0) - (*right.father)(node, 0);
        if (isFixed)
            (*t.father)(node, 0) = (*fixed_.father)(node, 0);
    }
    const SparseMatrix<> system = systemOf(massPerTime);
    return solver_(system, right, t, options);
}

KrylovResult Conduction::solveSteady(Temperature &t, const KrylovOptions &options) { return solve(t, 0, options); }

KrylovResult Conduction::step(Temperature &t, real seconds, const KrylovOptions &options) {
    return solve(t, material_.capacity / seconds, options);
}

std::map<std::string, real> Conduction::heatEntering(Temperature &t) const {
    Temperature product = start();
    stiffness_->multiply(t, product);
    std::vector<real> rows(volumes_.size() * names_.size());
    for (std::size_t node = 0; node < volumes_.size(); ++node)
        if (const int patch = (*fixedPatch_.father)(static_cast<index>(node), 0); patch >= 0)
            rows[node * names_.size() + toSize(patch)] = (*product.father)(static_cast<index>(node), 0) - heat_[node];
    std::vector<real> sums(names_.size());
    exactSums(mesh_.comm, rows, sums);
    std::map<std::string, real> heat;
    for (std::size_t patch = 0; patch < names_.size(); ++patch)
        heat[names_[patch]] = sums[patch];
    return heat;
}

real Conduction::error(const Temperature &t, const Function &exact) const {
    std::vector<real> rows;
    for (index node = 0; node < mesh_.nodes.owned; ++node) {
        const real difference = (*t.father)(node, 0) - exact(positionOf(mesh_, node));
        rows.push_back(volumes_[toSize(node)] * difference * difference);
        rows.push_back(volumes_[toSize(node)]);
    }
    std::array<real, 2> sums{};
    exactSums(mesh_.comm, rows, sums);
    return std::sqrt(sums[0] / sums[1]);
}

} // namespace Poisson
