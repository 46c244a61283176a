#include "DNDS/Geom/Cgns/TreeSource.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

namespace DNDS::Geom::Cgns {

namespace {

// Far beyond real files, and far below what would exhaust stack or memory.
constexpr std::size_t deepest = 64;
constexpr index maxNodes = 4'000'000;

} // namespace

// Integers as reals, too: versions and angles may be stored as either.
void TreeSource::loadFewNumbers(TreeNode &node) {
    const index size = node.size();
    if (!(node.isInteger() || node.isReal()) || size > TreeNode::maxNumbers)
        return;
    node.reals.resize(static_cast<std::size_t>(size));
    read(node, 0, std::span<real>(node.reals));
    if (node.isInteger()) {
        node.integers.resize(static_cast<std::size_t>(size));
        read(node, 0, std::span<index>(node.integers));
    }
}

index fileSize(const std::string &path) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    DNDS_CHECK(!error, DataError, "{}: {}", path, error.message());
    return static_cast<index>(size);
}

// ADF files name their format after four bytes.
std::unique_ptr<TreeSource> openSource(const std::string &path) {
    std::array<char, 16> head{};
    fileSize(path);
    std::ifstream(path, std::ios::binary).read(head.data(), head.size());
    const std::string_view start(head.data(), head.size());
    if (start.substr(0, 8) == "\211HDF\r\n\032\n")
        return openHdf5(path);
    if (start.substr(4, 12) == "ADF Database")
        return openAdf(path);
    throw DataError(fmt::format("{}: neither an HDF5 nor an ADF file, so not a CGNS file", path));
}

/// The broadcast is the tree of small nodes: kilobytes to a few megabytes. Opening on the other ranks waits for rank
/// 0's success, so that a missing file gives one error, not one a rank.
TreeNode readSharedTree(const CommunicatorView &comm, const std::string &path, std::unique_ptr<TreeSource> &source,
                        bool withSolutions) {
    std::vector<std::string> bytes(1);
    onRankZero(comm, [&] {
        source = openSource(path);
        bytes[0] = packTree(source->readTree(withSolutions));
    });
    broadcastStrings(comm, bytes);
    TreeNode root;
    comm.guarded([&] {
        root = unpackTree(bytes[0]);
        if (!source)
            source = openSource(path);
    });
    return root;
}

/// Sizes in a damaged header are checked before anything is allocated for them. `expansion` allows for compressed
/// data.
void checkFits(const TreeNode &node, index fileBytes, index expansion) {
    const index size = node.size();
    DNDS_CHECK(size >= 0 && size / expansion <= fileBytes / std::max<index>(bytesOf(node.type), 1), DataError,
               "{}: node {} claims more data than the file can hold", node.file, node.path);
}

// Looks at the nodes above only: a node that two links reach is visited twice, which the limit on all visits
// bounds.
void WalkGuard::enter(std::pair<std::string, std::string> node) {
    DNDS_CHECK(std::find(stack_.begin(), stack_.end(), node) == stack_.end(), DataError,
               "{}: links form a cycle at {} {}", file_, node.first, node.second);
    DNDS_CHECK(stack_.size() < deepest, DataError, "{}: nodes are more than {} levels deep", file_, deepest);
    DNDS_CHECK(++visited_ <= maxNodes, DataError, "{}: more than {} nodes", file_, maxNodes);
    stack_.push_back(std::move(node));
}

} // namespace DNDS::Geom::Cgns
