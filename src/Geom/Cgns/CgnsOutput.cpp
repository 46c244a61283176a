#include "DNDS/Geom/Cgns/CgnsOutput.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Geom/Cgns/Cgns.hpp"

#include <cgns_io.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <string_view>
#include <utility>

namespace DNDS::Geom::Detail {

namespace {

// Codes of the library: R real, I integer, then the number of bytes.
const char *nameOf(CgnsOutput::Type type) {
    return type == CgnsOutput::Type::Real ? "R8" : type == CgnsOutput::Type::Int32 ? "I4" : "I8";
}

/// Extents of an array; a row is two-dimensional with the first extent 1.
std::array<cgsize_t, 2> extents(index length, bool row) {
    DNDS_CHECK(length <= std::numeric_limits<cgsize_t>::max(), DataError,
               "an array of {} values is too large for this CGNS library", length);
    return row ? std::array<cgsize_t, 2>{1, static_cast<cgsize_t>(length)}
               : std::array<cgsize_t, 2>{static_cast<cgsize_t>(length), 1};
}

/// The library copies 33 characters of names and labels, however long they are.
std::array<char, CGIO_MAX_NAME_LENGTH + 1> padded(std::string_view text) {
    std::array<char, CGIO_MAX_NAME_LENGTH + 1> result{};
    std::copy_n(text.begin(), std::min(text.size(), result.size() - 1), result.begin());
    return result;
}

} // namespace

CgnsOutput::CgnsOutput(std::string path, bool hdf5) : path_(std::move(path)) {
    // The library opens an existing file to change it.
    std::remove(path_.c_str());
    check(cgio_open_file(path_.c_str(), CGIO_MODE_WRITE, hdf5 ? CGIO_FILE_HDF5 : CGIO_FILE_ADF, &file_), "the file");
    check(cgio_get_root_id(file_, &root_), "the root");
}

CgnsOutput::~CgnsOutput() {
    if (file_ >= 0)
        cgio_close_file(file_);
}

// The library keeps the text of its last error.
void CgnsOutput::check(int status, const std::string &what) const {
    if (status == 0)
        return;
    std::array<char, CGIO_MAX_ERROR_LENGTH + 1> text{};
    cgio_error_message(text.data());
    throw DataError(fmt::format("{}: the CGNS library cannot write {}: {}", path_, what, text.data()));
}

CgnsOutput::Node CgnsOutput::add(Node parent, const std::string &name, const char *label) {
    Node node = 0;
    check(cgio_create_node(file_, parent, padded(name).data(), &node), name);
    check(cgio_set_label(file_, node, padded(label).data()), name);
    return node;
}

CgnsOutput::Node CgnsOutput::addText(Node parent, const std::string &name, const char *label, const std::string &text) {
    const Node node = add(parent, name, label);
    const auto size = static_cast<cgsize_t>(text.size());
    check(cgio_set_dimensions(file_, node, "C1", 1, &size), name);
    check(cgio_write_all_data(file_, node, text.data()), name);
    return node;
}

// Small lists: the narrow copy is made even if it is not used.
CgnsOutput::Node CgnsOutput::addIntegers(Node parent, const std::string &name, const char *label, Type type,
                                         const std::vector<index> &values, bool row) {
    // Written in one call, unlike arrays that ranks write piece by piece.
    const Node node = addArray(parent, name, label, type, static_cast<index>(values.size()), row);
    std::vector<std::int32_t> narrow(values.begin(), values.end());
    check(cgio_write_all_data(file_, node,
                              type == Type::Int32 ? static_cast<const void *>(narrow.data()) : values.data()),
          name);
    return node;
}

CgnsOutput::Node CgnsOutput::addReals(Node parent, const std::string &name, const char *label,
                                      const std::vector<real> &values, bool wide) {
    const Node node = add(parent, name, label);
    const auto size = static_cast<cgsize_t>(values.size());
    std::vector<float> narrow(values.size());
    std::transform(values.begin(), values.end(), narrow.begin(), [](real x) { return static_cast<float>(x); });
    check(cgio_set_dimensions(file_, node, wide ? "R8" : "R4", 1, &size), name);
    check(cgio_write_all_data(file_, node, wide ? static_cast<const void *>(values.data()) : narrow.data()), name);
    return node;
}

CgnsOutput::Node CgnsOutput::addArray(Node parent, const std::string &name, const char *label, Type type, index length,
                                      bool row) {
    const auto size = extents(length, row);
    const Node node = add(parent, name, label);
    check(cgio_set_dimensions(file_, node, nameOf(type), row ? 2 : 1, size.data()), name);
    return node;
}

/// cgio takes ranges with strides for file and memory, all from 1 and both ends included.
void CgnsOutput::write(Node array, index first, index count, const void *values, bool row) {
    const auto begin = extents(first + 1, row);
    const auto end = extents(first + count, row);
    const auto size = extents(count, row);
    const std::array<cgsize_t, 2> one{1, 1};
    const int dimensions = row ? 2 : 1;
    check(cgio_write_data(file_, array, begin.data(), end.data(), one.data(), dimensions, size.data(), one.data(),
                          size.data(), one.data(), values),
          "an array");
}

// Unlike the destructor it reports a failure, as of a full disk.
void CgnsOutput::close() { check(cgio_close_file(std::exchange(file_, -1)), "the end of the file"); }

} // namespace DNDS::Geom::Detail

bool DNDS::Geom::canWriteCgns() noexcept { return true; }
