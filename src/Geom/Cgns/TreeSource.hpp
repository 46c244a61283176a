/// @file TreeSource.hpp
/// @brief Access to the nodes of a CGNS file of either file type.
#pragma once

#include "DNDS/Geom/Cgns/TreeNode.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Geom::Cgns {

/// A file open for reading, and the files to which it links. All functions are Local: ranks read independently, so that
/// no rank waits for another that found a damaged part.
class TreeSource {
  public:
    TreeSource() = default;
    TreeSource(const TreeSource &) = delete;
    TreeSource &operator=(const TreeSource &) = delete;
    virtual ~TreeSource() = default;

    /// All wanted nodes, with solutions if `withSolutions`, links followed. Throws DataError if the file is damaged
    /// or links form a cycle.
    /// Rank 0 calls it and broadcasts the result (`readSharedTree`): one rank walks the file's small nodes, which file
    /// systems of many ranks would otherwise serve over and over.
    virtual TreeNode readTree(bool withSolutions) = 0;
    /// Values `first` to `first + values.size()` of a node's data, counted through all its dimensions. Integers of both
    /// widths are converted, as are reals. Throws DataError if they cannot be read.
    /// `node` may be of a tree that another rank has read from the same file.
    virtual void read(const TreeNode &node, index first, std::span<index> values) = 0;
    virtual void read(const TreeNode &node, index first, std::span<real> values) = 0;

  protected:
    /// Reads numbers into the node itself if they are few.
    void loadFewNumbers(TreeNode &node);
};

/// Opens a file of the HDF5 type or the ADF type. Local. Throws DataError, or NotBuiltError if this build lacks the
/// library.
std::unique_ptr<TreeSource> openHdf5(const std::string &path);
std::unique_ptr<TreeSource> openAdf(const std::string &path);

/// The names in the root group of an HDF5 file, of any content; {} if it cannot be read or this build has no HDF5.
/// Local.
std::vector<std::string> hdf5Names(const std::string &path);

/// Opens a file; its first bytes give the type. Local.
std::unique_ptr<TreeSource> openSource(const std::string &path);

/// The tree of a file on all ranks. Rank 0 reads it; the others open the file (`source`) only after that succeeded.
/// Collective. Throws on all ranks as `openSource` and `TreeSource::readTree`.
TreeNode readSharedTree(const CommunicatorView &comm, const std::string &path, std::unique_ptr<TreeSource> &source,
                        bool withSolutions);

/// The size of a file in bytes. Throws DataError if there is no readable file. Local.
index fileSize(const std::string &path);

/// Checks that a node's data fit into their file if every byte of it holds at most `expansion` bytes of data. Throws
/// DataError. Local.
void checkFits(const TreeNode &node, index fileBytes, index expansion = 1);

/// Guards a walk through a tree of nodes: throws DataError if it is cyclic, too deep or too long.
/// Links make a file a graph. The stack holds the nodes above by file and identity: meeting one of them again is a
/// cycle.
class WalkGuard {
  public:
    explicit WalkGuard(const std::string &file) : file_(file) {}
    /// O(depth).
    void enter(std::pair<std::string, std::string> node);
    void leave() { stack_.pop_back(); }

  private:
    std::string file_;
    std::vector<std::pair<std::string, std::string>> stack_; ///< file and identity of the nodes above
    index visited_ = 0;
};

} // namespace DNDS::Geom::Cgns
