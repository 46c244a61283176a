// Replaces Gzip.cpp if no zlib was found.

#include "DNDS/Geom/File/Gzip.hpp"

#include "DNDS/Base/Error.hpp"

namespace DNDS::Geom {

std::unique_ptr<GzipContent> openGzip(const std::string &path) {
    throw NotBuiltError(fmt::format(
        "{} is compressed (gzip), which this build cannot read: it was made without zlib; unpack it", path));
}

bool inflateBlock(const std::string &path, std::string_view, std::span<char>) {
    throw NotBuiltError(
        fmt::format("{} has compressed arrays (vtkZLibDataCompressor), which this build cannot read: it "
                    "was made without zlib; save the file without compression",
                    path));
}

} // namespace DNDS::Geom
