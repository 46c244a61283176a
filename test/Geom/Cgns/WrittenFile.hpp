/// @file WrittenFile.hpp
/// @brief A temporary file that tests write as they like, as a CGNS file or byte by byte.
#pragma once

#include "Geom/Cgns/CgnsFile.hpp"
#include "support/TemporaryFile.hpp"
#include "support/TemporaryFolder.hpp"

#include <functional>
#include <string>

namespace DNDS::Geom::test {

class WrittenFile : public TemporaryFile {
  public:
    WrittenFile() : TemporaryFile(".cgns") {}

    /// Rank 0 writes. Collective.
    const WrittenFile &write(FileType type, float version, const std::function<void(CgnsFile &)> &content) const {
        DNDS::test::world().guarded([&] {
            if (DNDS::test::world().rank() == 0) {
                CgnsFile file(path(), type, version);
                content(file);
            }
        });
        return *this;
    }
    const WrittenFile &write(const std::string &bytes) const {
        DNDS::test::world().guarded([&] {
            if (DNDS::test::world().rank() == 0)
                std::ofstream(path(), std::ios::binary) << bytes;
        });
        return *this;
    }
    /// Contents of the file. Local.
    std::string bytes() const { return DNDS::test::contentOf(path()); }
};

} // namespace DNDS::Geom::test
