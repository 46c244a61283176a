/// @file VtkHdfSteps.hpp
/// @brief Reads the steps of a complete VTKHDF file that this library has written. Part of VtkHdfWriter.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Serialize/HdfObject.hpp"

#include <string>
#include <vector>

namespace DNDS::Geom::Detail {

/// A file that this rank reads independently. All functions are Local and throw DataError, with the path, if the file
/// cannot be read or was not written by `VtkHdfWriter`.
class VtkHdfSteps {
  public:
    struct Field {
        std::string name;
        int components = 1;
    };

    explicit VtkHdfSteps(std::string path);

    const std::vector<real> &times() const noexcept { return times_; }
    index points() const noexcept { return points_; }
    index cells() const noexcept { return cells_; }
    /// Rows [first, first + count) of the mesh's points, three numbers each.
    std::vector<real> pointRows(index first, index count) const { return rows("VTKHDF/Points", 3, first, count); }
    /// VTK's types of cells [first, first + count).
    std::vector<std::uint8_t> cellTypes(index first, index count) const;
    /// The fields of "PointData" or "CellData".
    std::vector<Field> fields(const std::string &group) const;
    /// Rows [first, first + count) of all `global` ones at a step.
    std::vector<real> values(const std::string &group, const Field &field, index step, index global, index first,
                             index count) const;

  private:
    std::vector<real> rows(const std::string &dataset, int components, index first, index count) const;
    std::vector<index> shape(const std::string &dataset) const;
    /// Rows of any type, into memory of that type.
    void read(const std::string &dataset, hid_t type, int components, index first, index count, void *values) const;

    std::string path_;
    DNDS::Detail::HdfObject file_;
    std::vector<real> times_;
    index points_ = 0, cells_ = 0;
};

} // namespace DNDS::Geom::Detail
