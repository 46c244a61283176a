// Replaces Gzip.cpp if no zlib was found.

#include "DNDS/Geom/File/Gzip.hpp"

#include "DNDS/Base/Error.hpp"

namespace DNDS::Geom {

std::unique_ptr<GzipContent> openGzip(const std::string &path) {
    throw NotBuiltError(fmt::format(
        "{} is compressed (gzip), which this build cannot read: it was made without zlib; unpack it", path));
}

} // namespace DNDS::Geom
