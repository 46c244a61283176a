/// @file NodeSource.hpp
/// @brief How the mesh reader gets at the nodes of a CGNS file, whatever its file type.
#pragma once

#include "DNDS/Geom/Cgns/TreeNode.hpp"

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Geom::Cgns {

/// A file that is open for reading, and those it links to. All functions are Local: ranks read independently, so that
/// no rank can be left waiting for another that met a damaged part.
class NodeSource {
  public:
    NodeSource() = default;
    NodeSource(const NodeSource &) = delete;
    NodeSource &operator=(const NodeSource &) = delete;
    virtual ~NodeSource() = default;

    /// All wanted nodes, those of solutions if `withSolutions`, links followed. Throws DataError where the file is
    /// damaged or links lead round in a circle.
    virtual TreeNode readTree(bool withSolutions) = 0;
    /// Values `first` to `first + values.size()` of a node's data, counted through all its dimensions. Integers of both
    /// widths are converted, as are reals. Throws DataError where they cannot be had.
    virtual void read(const TreeNode &node, index first, std::span<index> values) = 0;
    virtual void read(const TreeNode &node, index first, std::span<real> values) = 0;

  protected:
    /// Reads numbers into the node itself if they are few.
    void loadFewNumbers(TreeNode &node);
};

/// Opens a file of the HDF5 type or the ADF type. Local. Throws DataError, or NotBuiltError where this build lacks the
/// library.
std::unique_ptr<NodeSource> openHdf5(const std::string &path);
std::unique_ptr<NodeSource> openAdf(const std::string &path);

/// Opens a file by what its first bytes say. Local.
std::unique_ptr<NodeSource> openSource(const std::string &path);

/// The size of a file in bytes. Throws DataError where there is none that can be read. Local.
index fileSize(const std::string &path);

/// Checks that a node's data fit into the file that is said to hold them, if every byte of it stands for at most
/// `expansion` bytes of data. Throws DataError. Local.
void checkFits(const TreeNode &node, index fileBytes, index expansion = 1);

/// Guards a walk through a tree of nodes: throws DataError where it goes round in a circle, too deep or on without end.
class WalkGuard {
  public:
    explicit WalkGuard(const std::string &file) : file_(file) {}
    void enter(std::pair<std::string, std::string> node);
    void leave() { stack_.pop_back(); }

  private:
    std::string file_;
    std::vector<std::pair<std::string, std::string>> stack_; ///< file and identity of the nodes above
    index visited_ = 0;
};

} // namespace DNDS::Geom::Cgns
