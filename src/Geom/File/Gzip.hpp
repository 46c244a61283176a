/// @file Gzip.hpp
/// @brief The content of compressed files (gzip).
#pragma once

#include "DNDS/Base/Types.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace DNDS::Geom {

/// The content of a compressed file. All functions are Local.
class GzipContent {
  public:
    GzipContent() = default;
    GzipContent(const GzipContent &) = delete;
    GzipContent &operator=(const GzipContent &) = delete;
    virtual ~GzipContent() = default;

    /// As `MeshFile::read`. Throws DataError if the file is damaged or ends early.
    virtual std::size_t read(index offset, char *into, std::size_t count) = 0;
};

/// Defined in Gzip.cpp or, for builds without zlib, in GzipAbsent.cpp. Throws DataError with the path if the file
/// cannot be opened, NotBuiltError without zlib. Local.
std::unique_ptr<GzipContent> openGzip(const std::string &path);

} // namespace DNDS::Geom
