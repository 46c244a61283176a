#include "DNDS/Geom/Cgns/Solutions.hpp"

#include "DNDS/Geom/Cgns/ModelBuilder.hpp"

#include <algorithm>
#include <numeric>

namespace DNDS::Geom::Cgns {

namespace {

/// The position of a field's values in one zone.
struct FieldPart {
    const TreeNode *values = nullptr;
    index skipped = 0; ///< rind values before the first one
};

/// One array name of one solution name over all zones.
struct Field {
    std::string solution;
    std::string name;
    bool atCells;
    std::vector<FieldPart> parts; ///< [zones]
};

index rowsOf(const Zone &zone, bool atCells) { return atCells ? zone.cells : zone.nodes; }

/// Finds the fields in the tree. Local, the same on all ranks.
/// Works on the tree alone, so that ranks agree on the list of fields without messages.
class FieldFinder {
  public:
    FieldFinder(const Model &model, std::vector<std::string> &warnings) : model_(model), warnings_(warnings) {}

    std::vector<Field> find() {
        for (std::size_t zone = 0; zone < model_.zones.size(); zone++)
            for (const TreeNode &node : model_.zones[zone].tree->children)
                if (node.label == "FlowSolution_t")
                    addSolution(node, zone);
        std::erase_if(fields_, [&](const Field &field) { return !isComplete(field); });
        return std::move(fields_);
    }

  private:
    // A field that cannot be read whole is a warning: the mesh itself is complete.
    void leaveOut(std::size_t zone, const std::string &what, const std::string &why) {
        warnings_.push_back(
            fmt::format("{}, {}: {}, so it is left out", model_.zoneText(static_cast<int>(zone)), what, why));
    }

    // Rind values of unstructured zones come before and after the others, as for coordinates.
    void addSolution(const TreeNode &node, std::size_t zone) {
        const std::string what = fmt::format("solution '{}'", node.name);
        const std::string location = trimmed(node.textOf("GridLocation_t"));
        if (!location.empty() && location != "Vertex" && location != "CellCenter")
            return leaveOut(zone, what, fmt::format("it is at '{}', neither Vertex nor CellCenter", location));
        if (node.named("PointList") != nullptr || node.named("PointRange") != nullptr)
            return leaveOut(zone, what, "it covers a part of the zone");
        FieldPart part;
        index rind = 0;
        if (const TreeNode *planes = node.withLabel("Rind_t"); planes != nullptr) {
            const auto none = [](index n) { return n == 0; };
            const auto small = [](index n) { return n >= 0 && n < maxElements; };
            const bool zero = std::all_of(planes->integers.begin(), planes->integers.end(), none);
            const bool simple = !model_.zones[zone].structured && planes->integers.size() == 2 &&
                                std::all_of(planes->integers.begin(), planes->integers.end(), small);
            if (!zero && !simple)
                return leaveOut(zone, what, "it has rind planes");
            part.skipped = zero ? 0 : planes->integers[0];
            rind = zero ? 0 : planes->integers[0] + planes->integers[1];
        }
        for (const TreeNode &array : node.children)
            if (array.label == "DataArray_t") {
                part.values = &array;
                addArray(node, zone, location == "CellCenter", part, rind);
            }
    }

    /// O(fields) search; files have tens of fields.
    void addArray(const TreeNode &solution, std::size_t zone, bool atCells, const FieldPart &part, index rind) {
        const TreeNode &array = *part.values;
        const std::string what = fmt::format("solution '{}', array '{}'", solution.name, array.name);
        if (!array.isReal() && !array.isInteger())
            return leaveOut(zone, what, "its values are not numbers");
        const index rows = rowsOf(model_.zones[zone], atCells);
        if (array.size() - rind != rows)
            return leaveOut(
                zone, what,
                fmt::format("it has {} values for {} {}", array.size() - rind, rows, atCells ? "cells" : "vertices"));
        const auto same = [&](const Field &field) {
            return field.solution == solution.name && field.name == array.name && field.atCells == atCells;
        };
        auto found = std::find_if(fields_.begin(), fields_.end(), same);
        if (found == fields_.end())
            found = fields_.insert(found,
                                   {solution.name, array.name, atCells, std::vector<FieldPart>(model_.zones.size())});
        found->parts[zone] = part;
    }

    bool isComplete(const Field &field) {
        for (std::size_t zone = 0; zone < model_.zones.size(); zone++)
            if (field.parts[zone].values == nullptr && rowsOf(model_.zones[zone], field.atCells) > 0) {
                leaveOut(zone, fmt::format("solution '{}', array '{}'", field.solution, field.name),
                         "other zones have it, but this one does not");
                return false;
            }
        return true;
    }

    const Model &model_;
    std::vector<std::string> &warnings_;
    std::vector<Field> fields_;
};

/// Values [own.begin, own.end) of a field, counted through all zones. Local.
/// O(own rows + zones) time; a rank reads one slice from each zone that its range touches.
std::vector<real> readShare(const Model &model, const Field &field, const Range &own, TreeSource &source) {
    std::vector<real> values(static_cast<std::size_t>(own.size()));
    index first = 0;
    for (std::size_t zone = 0; zone < model.zones.size(); zone++) {
        const index rows = rowsOf(model.zones[zone], field.atCells);
        const Range share{std::max(own.begin, first), std::min(own.end, first + rows)};
        if (share.begin < share.end)
            source.read(*field.parts[zone].values, field.parts[zone].skipped + share.begin - first,
                        std::span<real>(values).subspan(static_cast<std::size_t>(share.begin - own.begin),
                                                        static_cast<std::size_t>(share.size())));
        first += rows;
    }
    return values;
}

/// Drops the values of merged nodes; the remaining ones are renumbered consecutively.
/// A survivor's number is the next one of this rank; a merged node has the number of an earlier or a foreign node.
std::vector<real> ofSurvivors(const std::vector<real> &values, const NodeBlock &nodes, index firstNode) {
    std::vector<real> kept;
    for (std::size_t i = 0; i < values.size(); i++)
        if (nodes.numbers[i] == firstNode + static_cast<index>(kept.size()))
            kept.push_back(values[i]);
    return kept;
}

} // namespace

// O(own rows x fields) time and memory; no messages but one agreement, as all ranks derive the same list of fields
// from the tree.
MeshFields readSolutions(CommunicatorView comm, const Model &model, const NodeBlock &nodes, SourceMesh &mesh,
                         TreeSource &source) {
    std::vector<Field> found = FieldFinder(model, mesh.warnings).find();
    // Values of cells are read by position among the cells of all zones, by the sizes that zones state: only their
    // total is compared with the cells of the mesh.
    const index stated = std::accumulate(model.zones.begin(), model.zones.end(), index{0},
                                         [](index sum, const Zone &zone) { return sum + zone.cells; });
    if (stated != mesh.cells.globalSize && std::erase_if(found, [](const Field &field) { return field.atCells; }) > 0)
        mesh.warnings.push_back(fmt::format("{}: fields at cells are left out: zones state {} cells but have {}",
                                            model.file, stated, mesh.cells.globalSize));
    MeshFields fields;
    comm.guarded([&] {
        const Range ownCells{mesh.cells.first, mesh.cells.first + mesh.cells.size()};
        for (const Field &field : found) {
            MeshField result{field.solution, field.name,
                             readShare(model, field, field.atCells ? ownCells : nodes.own, source)};
            if (!field.atCells && nodes.joined)
                result.values = ofSurvivors(result.values, nodes, mesh.firstNode);
            (field.atCells ? fields.cells : fields.nodes).push_back(std::move(result));
        }
    });
    return fields;
}

} // namespace DNDS::Geom::Cgns
