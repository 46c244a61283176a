/// @file ModelBuilder.hpp
/// @brief Builds the model of a mesh from the tree of a CGNS file. Part of Model.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Cgns/Model.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace DNDS::Geom::Cgns {

/// No element has a higher number: sums of two never overflow.
inline constexpr index maxElements = index{1} << 60;

/// The last part of a name that may be a path: "Base/Family".
inline std::string lastPart(const std::string &name) { return name.substr(name.rfind('/') + 1); }

/// The text up to a zero byte, without trailing blanks.
inline std::string trimmed(std::string text) {
    text.resize(std::min(text.find('\0'), text.size()));
    text.resize(text.find_last_not_of(' ') + 1);
    return text;
}

/// Used once: constructed with a tree, which must outlive it, then asked for the model. All functions are Local.
class ModelBuilder {
  public:
    ModelBuilder(const TreeNode &root, const CgnsOptions &options);
    Model build();

  private:
    /// Whether a base is two- or three-dimensional and some zone states cells.
    static bool hasCells(const TreeNode &base);
    /// Sets `baseTree_` and the dimensions of the model.
    void chooseBase();
    void readFamilies();
    void readZones();
    /// Adds a zone, with its nodes after those of the zones before.
    void readZone(const TreeNode &node);
    void readCoordinates(const TreeNode &node, Zone &zone) const;
    void readSections(int zone);
    /// A section as the file has it, not yet checked.
    Section readSection(const TreeNode &node, int zone) const;
    /// Throws if arrays are too short for the section; sets `byParents`.
    void checkConnectivity(Section &section);
    /// Cells to Model::cells, faces to Model::faces; the rest is left out with a note.
    void sortIntoLists(int zone, std::vector<Section> sections);
    void readConditions(int zone);
    void addCondition(const TreeNode &node, int zone);
    /// The number of a patch, which is added if it is new.
    int patchFor(const std::string &name, const std::string &kind, const std::string &family, int zone);
    void readConnections(int zone);
    /// Common parts of both kinds. False: left out with a warning.
    bool startConnection(const TreeNode &node, int zone, Connection &connection);
    void addConnection(const TreeNode &node, const TreeNode &group, int zone);
    /// Adds a section of the faces on one side of a connection; returns its number in Model::faces.
    int addListedFaces(const Connection &connection, std::size_t side, const std::string &location);
    std::optional<PeriodicTransform> readPeriodic(const TreeNode &node, const TreeNode &group, int zone) const;
    void addStructuredConnection(const TreeNode &node, const TreeNode &group, int zone);
    std::optional<PointSet> readPoints(const TreeNode &node, int zone, const std::string &suffix) const;
    std::optional<PointSet> readValidPoints(const TreeNode &node, int zone, const std::string &suffix,
                                            const std::string &where) const;
    /// Adds a section of the faces in a range of vertices; returns its number in Model::faces.
    int addPatchSection(int zone, const std::array<Triple, 2> &range, const std::string &name);
    /// Adds a section of the faces that a condition names, by their own indices or by those of cells; empty: left out
    /// with a warning.
    std::optional<int> addFaces(const TreeNode &node, int zone, const PointSet &points);
    int addPatch(Section section);
    /// Makes a condition of each section of faces, for files without boundary conditions.
    void makePatchesOfSections();
    int findZone(const std::string &name) const;
    /// The name of another base with this zone, "" without one.
    std::string otherBaseOf(const std::string &name) const;
    std::string text(int zone, const char *what, const std::string &name) const {
        return fmt::format("{}, {} '{}'", model_.zoneText(zone), what, name);
    }

    const TreeNode &root_;
    const CgnsOptions &options_;
    const TreeNode *baseTree_ = nullptr;
    /// [zones] as Zone::tree.
    std::vector<const TreeNode *> zoneTrees_;
    /// FamilyBC_t by name of the family.
    std::map<std::string, std::string> familyKinds_;
    /// Some zone has a BC_t, valid or not.
    bool anyCondition_ = false;
    Model model_;
};

} // namespace DNDS::Geom::Cgns
