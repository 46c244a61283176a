#include "DNDS/Geom/Vtk/HdfOutput.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace DNDS::Geom::Detail {

namespace {

using DNDS::Detail::HdfQuiet;

// One dimension for scalars, two for rows; only the number of rows may grow.
HdfObject spaceOf(const HdfRows &rows, index length, bool growing) {
    const std::array<hsize_t, 2> size{static_cast<hsize_t>(length), static_cast<hsize_t>(rows.columns)};
    const std::array<hsize_t, 2> most{H5S_UNLIMITED, static_cast<hsize_t>(rows.columns)};
    return {H5Screate_simple(rows.columns > 0 ? 2 : 1, size.data(), growing ? most.data() : nullptr), H5Sclose};
}

} // namespace

/// Rank 0 has the row; the others take part without one.
void HdfOutput::writeValue(hid_t parent, const std::string &name, index value) {
    writeRows(parent, name, HdfRows{0, 1, 0, comm().rank() == 0 ? 1 : 0}, &value);
}

/// No times and no fill values are stored: equal content gives equal files. Growing data sets have chunks of a step's
/// rows, at most 65536.
HdfObject HdfOutput::makeDataset(hid_t parent, const std::string &name, hid_t type, const HdfRows &rows, index length,
                                 bool growing) {
    const HdfQuiet quiet;
    comm().beforeCollective();
    HdfObject properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_obj_track_times(properties.get(), false); // the same content, the same file
    H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER);
    if (growing) {
        constexpr index longestChunk = 1 << 16;
        const std::array<hsize_t, 2> chunk{static_cast<hsize_t>(std::clamp<index>(rows.global, 1, longestChunk)),
                                           static_cast<hsize_t>(rows.columns)};
        require(H5Pset_chunk(properties.get(), rows.columns > 0 ? 2 : 1, chunk.data()), name);
    }
    HdfObject space = spaceOf(rows, length, growing);
    HdfObject data(H5Dcreate2(parent, name.c_str(), type, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
                   H5Dclose);
    require(data.get(), name);
    return data;
}

// Extends a data set to `length` rows; existing rows stay.
void HdfOutput::grow(hid_t data, const std::string &name, const HdfRows &rows, index length) {
    const HdfQuiet quiet;
    comm().beforeCollective();
    const std::array<hsize_t, 2> size{static_cast<hsize_t>(length), static_cast<hsize_t>(rows.columns)};
    require(H5Dset_extent(data, size.data()), name);
}

// This rank's rows, after the `before` rows of earlier steps.
void HdfOutput::write(hid_t data, const std::string &name, hid_t type, const HdfRows &rows, index before,
                      const void *values) {
    const std::array<hsize_t, 2> first{static_cast<hsize_t>(before + rows.first), 0};
    const std::array<hsize_t, 2> count{static_cast<hsize_t>(rows.own), static_cast<hsize_t>(rows.columns)};
    const std::size_t dimensions = rows.columns > 0 ? 2 : 1;
    writeBox(data, name, type, std::span(first).first(dimensions), std::span(count).first(dimensions), values);
}

} // namespace DNDS::Geom::Detail
