#include "DNDS/GridFile/Packing.hpp"

#include "DNDS/GridFile/ElementConversion.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

namespace DNDS::Detail {

namespace {

// Numbers of any type as 8 bytes, so that Packing is no template.
template <class T>
PackedNumber packedFrom(T value) {
    PackedNumber number{};
    std::memcpy(number.data(), &value, sizeof(T));
    return number;
}

template <class T>
T numberOf(const PackedNumber &number) {
    T value;
    std::memcpy(&value, number.data(), sizeof(T));
    return value;
}

// `_Unsigned`: classic formats lack unsigned types, so programs mark signed ones.
// No effect on floating-point types.
ElementKind unsignedOf(ElementKind kind) {
    return withNumber(kind, [kind](auto number) {
        if constexpr (std::is_integral_v<decltype(number)>)
            return elementKindOf<std::make_unsigned_t<decltype(number)>>();
        else
            return kind;
    });
}

/// The fill values of the NetCDF library (netcdf.h): the first or last integers but one (of 64 bits, but two), -32767
/// for example; none for bytes.
std::optional<PackedNumber> defaultFill(ElementKind kind) {
    return withNumber(kind, [](auto zero) -> std::optional<PackedNumber> {
        using Number = decltype(zero);
        using Limits = std::numeric_limits<Number>;
        constexpr Number one = sizeof(Number) == 8 ? 1 : 0;
        if constexpr (std::is_floating_point_v<Number>)
            return packedFrom(Number{0x1.ep+122}); // 9.9692099683868690e+36
        else if constexpr (sizeof(Number) == 1)
            return {};
        else if constexpr (std::is_unsigned_v<Number>)
            return packedFrom(static_cast<Number>(Limits::max() - one));
        else
            return packedFrom(static_cast<Number>(Limits::min() + 1 + one));
    });
}

// Numbers, or characters of text.
std::size_t lengthOf(const NetcdfValue &value) {
    return std::visit([](const auto &list) { return list.size(); }, value);
}

bool isText(const NetcdfAttribute &attribute) { return std::holds_alternative<std::string>(attribute.value); }

bool isWider(ElementKind kind, ElementKind other) {
    return isFloating(kind) == isFloating(other) ? bytesOf(kind) > bytesOf(other) : isFloating(kind);
}

/// Whether limits are unpacked values: they have the unpacked type, and it is wider than the packed one.
bool isUnpacked(const NetcdfAttribute &limits, const Packing &packing) {
    return packing.unpackedKind != packing.kind && limits.kind == packing.unpackedKind;
}

/// Packs a limit as a value: as a packed number if it is one within rounding, else as the next one inside the limit.
/// Limits beyond the type become its first or last number; NaN is no limit.
std::optional<PackedNumber> packedLimit(const NetcdfAttribute &limits, std::size_t which, const Packing &packing) {
    const real limit = numberOf<real>(packedNumber(limits, which, ElementKind::Float64).value());
    const real number = (limit - packing.offset) / packing.scale;
    const bool isLeast = (which == 0 && limits.name != "valid_max") != (packing.scale < 0);
    return withNumber(packing.kind, [number, isLeast](auto zero) -> std::optional<PackedNumber> {
        using Number = decltype(zero);
        using Limits = std::numeric_limits<Number>;
        if (std::isnan(number))
            return {};
        if constexpr (std::is_floating_point_v<Number>)
            return packedFrom(static_cast<Number>(number));
        else {
            real inside = std::nearbyint(number);
            if (std::fabs(number - inside) > 1e-6)
                inside = isLeast ? std::ceil(number) : std::floor(number);
            if (holds<Number>(inside))
                return packedFrom(static_cast<Number>(inside));
            return packedFrom(inside < 0 ? Limits::min() : Limits::max());
        }
    });
}

/// The numbers of an attribute in the packed type, or `wanted` limits; a note for each that does not fit.
/// Comparing packed numbers is exact; after scaling, a fill value might differ from itself by rounding.
std::vector<PackedNumber> numbersOf(const NetcdfVariable &variable, const char *name, Packing &packing,
                                    std::size_t wanted = 0) {
    std::vector<PackedNumber> numbers;
    const NetcdfAttribute *attribute = variable.attribute(name);
    if (attribute == nullptr)
        return numbers;
    const auto note = [&](const char *why) {
        packing.notes.push_back(fmt::format("attribute {} of '{}' {}: ignored", name, variable.name, why));
    };
    if (isText(*attribute) || (wanted > 0 && lengthOf(attribute->value) != wanted)) {
        note(isText(*attribute) ? "is text" : "has the wrong number of values");
        return numbers;
    }
    // A signed attribute of a variable that is read as unsigned is unsigned, too.
    const bool turned = packing.kind != variable.kind && attribute->kind == variable.kind;
    for (std::size_t k = 0; k < lengthOf(attribute->value); k++) {
        const auto number = wanted > 0 && isUnpacked(*attribute, packing)
                                ? packedLimit(*attribute, k, packing)
                                : packedNumber(*attribute, k, turned ? variable.kind : packing.kind);
        if (number)
            numbers.push_back(*number);
        else
            note(fmt::format("does not fit its type {}", elementKindName(packing.kind)).c_str());
    }
    return numbers;
}

// Also notes that the variable is scaled, whatever the value.
real realOf(const NetcdfVariable &variable, const char *name, real otherwise, Packing &packing) {
    const NetcdfAttribute *attribute = variable.attribute(name);
    if (attribute == nullptr)
        return otherwise;
    if (isText(*attribute) || lengthOf(attribute->value) != 1) {
        packing.notes.push_back(fmt::format("attribute {} of '{}' is not one number: ignored", name, variable.name));
        return otherwise;
    }
    packing.scaled = true;
    if (isWider(attribute->kind, packing.unpackedKind))
        packing.unpackedKind = attribute->kind;
    return numberOf<real>(packedNumber(*attribute, 0, ElementKind::Float64).value());
}

/// Whether a number of the file stands for a missing value. NaN needs a flag, as it equals nothing. Values are compared
/// as they are in the file, before unpacking (NetCDF User Guide, appendix A).
template <class Number>
class MissingTest {
  public:
    explicit MissingTest(const Packing &packing) {
        for (const PackedNumber &number : packing.missing) {
            const auto value = numberOf<Number>(number);
            if (value != value)
                nan_ = true;
            else
                values_.push_back(value);
        }
        if (packing.least)
            least_ = numberOf<Number>(*packing.least);
        if (packing.most)
            most_ = numberOf<Number>(*packing.most);
    }
    bool operator()(Number value) const {
        if (value < least_ || value > most_ || (nan_ && value != value))
            return true;
        // Few values: a search costs less than a table.
        for (const Number missing : values_)
            if (value == missing)
                return true;
        return false;
    }

  private:
    static constexpr bool floating = std::is_floating_point_v<Number>;
    std::vector<Number> values_;
    Number least_ = floating ? -std::numeric_limits<Number>::infinity() : std::numeric_limits<Number>::lowest();
    Number most_ = floating ? std::numeric_limits<Number>::infinity() : std::numeric_limits<Number>::max();
    bool nan_ = false;
};

// Scaled in double, whatever the types. Memory of integers holds the file's number exactly or not at all.
template <class Number, class Value>
Value unpacked(const Packing &packing, Number number, const std::string &what) {
    if constexpr (std::is_floating_point_v<Value>) {
        if (packing.scaled)
            return static_cast<Value>(static_cast<real>(number) * packing.scale + packing.offset);
        return static_cast<Value>(number);
    } else {
        DNDS_CHECK(holds<Value>(number), DataError, "{}: {} does not fit {}", what, number,
                   elementKindName(elementKindOf<Value>()));
        return static_cast<Value>(number);
    }
}

// With a mask, integers need no fill value: missing elements are 0 and marked in the mask.
template <class Value>
Value valueOfMissing(std::optional<real> fill, bool masked, const std::string &what) {
    if constexpr (std::is_floating_point_v<Value>) {
        return static_cast<Value>(fill.value_or(std::numeric_limits<real>::quiet_NaN()));
    } else {
        DNDS_CHECK(fill || masked, DataError,
                   "{} has missing values, and {} has no NaN: give a mask, or NetcdfReadOptions::fill", what,
                   elementKindName(elementKindOf<Value>()));
        DNDS_CHECK(holds<Value>(fill.value_or(0)), DataError, "{}: {} for missing values does not fit {}", what,
                   fill.value_or(0), elementKindName(elementKindOf<Value>()));
        return static_cast<Value>(fill.value_or(0));
    }
}

/// O(elements x missing values); 10 x 10 types are compiled, each with a tight loop.
template <class Number, class Value>
void unpackAs(const Packing &packing, const std::byte *numbers, const Slab &slab, const SlabChunk &chunk,
              std::optional<real> fill, const std::string &what) {
    // Types are chosen once a chunk, so that the loop has no branches on them.
    const auto *from = reinterpret_cast<const Number *>(numbers);
    auto *to = static_cast<Value *>(slab.data);
    const MissingTest<Number> isMissing(packing);
    forEachRun(chunk, stridesOf(slab), [&](index packed, index memory, index length, index stride) {
        for (index i = 0; i < length; i++, memory += stride) {
            const Number number = from[packed + i];
            const bool missing = isMissing(number);
            to[memory] = missing ? valueOfMissing<Value>(fill, slab.mask != nullptr, what)
                                 : unpacked<Number, Value>(packing, number, what);
            if (slab.mask != nullptr)
                slab.mask[memory] = missing ? 1 : 0;
        }
    });
}

// Rounds to the nearest; checkPacking has refused unscaled floating-point values for integers.
template <class Number, class Value>
Number packed(const Packing &packing, Value value, const std::string &what) {
    if constexpr (std::is_floating_point_v<Number>) {
        if (packing.scaled)
            return static_cast<Number>((static_cast<real>(value) - packing.offset) / packing.scale);
        return static_cast<Number>(value);
    } else {
        if (packing.scaled) {
            const real number = std::nearbyint((static_cast<real>(value) - packing.offset) / packing.scale);
            DNDS_CHECK(holds<Number>(number), DataError, "{}: {} packed is {}, which does not fit {}", what, value,
                       number, elementKindName(elementKindOf<Number>()));
            return static_cast<Number>(number);
        }
        DNDS_CHECK(holds<Number>(value), DataError, "{}: {} does not fit {}", what, value,
                   elementKindName(elementKindOf<Number>()));
        return static_cast<Number>(value);
    }
}

// NaN, unless the variable declares a value of its own; integers must have one.
template <class Number>
Number numberOfMissing(const Packing &packing, const std::string &what) {
    if constexpr (std::is_floating_point_v<Number>)
        if (!packing.declared)
            return std::numeric_limits<Number>::quiet_NaN();
    DNDS_CHECK(!packing.missing.empty(), DataError,
               "{} has no value for missing ones: give it the attribute _FillValue", what);
    return numberOf<Number>(packing.missing.front());
}

// A value that packs to the number of missing values by chance is read as missing; that is not checked.
template <class Number, class Value>
void packAs(const Packing &packing, const WrittenSlab &slab, const SlabChunk &chunk, std::byte *numbers,
            const std::string &what) {
    const auto *from = static_cast<const Value *>(slab.data);
    auto *to = reinterpret_cast<Number *>(numbers);
    forEachRun(chunk, stridesOf(slab), [&](index place, index memory, index length, index stride) {
        for (index i = 0; i < length; i++, memory += stride) {
            const Value value = from[memory];
            const bool missing = value != value || (slab.mask != nullptr && slab.mask[memory] != 0);
            to[place + i] = missing ? numberOfMissing<Number>(packing, what) : packed<Number>(packing, value, what);
        }
    });
}

} // namespace

// Integers of another value do not fit, floating-point numbers are rounded.
std::optional<PackedNumber> packedNumber(const NetcdfAttribute &attribute, std::size_t which, ElementKind kind) {
    return std::visit(
        [&](const auto &list) -> std::optional<PackedNumber> {
            if constexpr (std::is_same_v<std::decay_t<decltype(list)>, std::string>) {
                return {};
            } else {
                if (which >= list.size())
                    return {};
                return withNumber(kind, [&](auto zero) -> std::optional<PackedNumber> {
                    using Number = decltype(zero);
                    // For a float variable, a double attribute means the nearest float.
                    if (!std::is_floating_point_v<Number> && !holds<Number>(list[which]))
                        return {};
                    return packedFrom(static_cast<Number>(list[which]));
                });
            }
        },
        attribute.value);
}

// `valid_min` and `valid_max` take precedence over `valid_range`. They are packed numbers, unless they have the wider
// type of unpacked values. Source: NetCDF User Guide, appendix A, and CF conventions 1.8, sections 2.5.1 and 8.1.
// Attributes that break their rules are ignored with a note, since files in the wild have them.
Packing packingOf(const NetcdfVariable &variable) {
    Packing packing;
    const std::string isUnsigned = variable.text("_Unsigned");
    packing.kind = isUnsigned == "true" || isUnsigned == "True" ? unsignedOf(variable.kind) : variable.kind;
    // The first value found is the one that is written for missing values.
    for (const char *name : {"_FillValue", "missing_value"})
        for (const PackedNumber &number : numbersOf(variable, name, packing))
            packing.missing.push_back(number);
    packing.declared = !packing.missing.empty();
    // Rows that no program has written hold the library's default.
    if (variable.attribute("_FillValue") == nullptr)
        if (const auto fill = defaultFill(variable.kind))
            packing.missing.push_back(*fill);
    // Before the limits, whose meaning depends on it.
    packing.unpackedKind = packing.kind;
    packing.scale = realOf(variable, "scale_factor", 1, packing);
    packing.offset = realOf(variable, "add_offset", 0, packing);
    for (const auto &[name, low, high] : {std::tuple("valid_range", true, true), std::tuple("valid_min", true, false),
                                          std::tuple("valid_max", false, true)}) {
        const auto numbers = numbersOf(variable, name, packing, low && high ? 2 : 1);
        if (numbers.size() != (low && high ? 2 : 1))
            continue;
        // A negative scale turns the order of values around.
        const bool turned = packing.scale < 0 && isUnpacked(*variable.attribute(name), packing);
        if (low)
            (turned ? packing.most : packing.least) = numbers.front();
        if (high)
            (turned ? packing.least : packing.most) = numbers.back();
    }
    return packing;
}

// Before any value is read: integers cannot hold scaled values.
void checkUnpacking(const Packing &packing, ElementKind memory, const std::string &what) {
    (void)bytesOf(memory);
    DNDS_CHECK(isFloating(memory) || (!packing.scaled && !isFloating(packing.kind)), LayoutError,
               "{} has floating-point values{}, but memory is {}", what,
               packing.scaled ? " (scale_factor, add_offset)" : "", elementKindName(memory));
}

// The same before writing.
void checkPacking(const Packing &packing, ElementKind memory, const std::string &what) {
    (void)bytesOf(memory);
    DNDS_CHECK(!isFloating(memory) || packing.scaled || isFloating(packing.kind), LayoutError,
               "{} holds {} without scale_factor, but memory is {}", what, elementKindName(packing.kind),
               elementKindName(memory));
    DNDS_CHECK(packing.scale != 0, LayoutError, "{} has scale_factor 0", what);
}

void unpackChunk(const Packing &packing, const std::byte *numbers, const Slab &slab, const SlabChunk &chunk,
                 std::optional<real> fill, const std::string &what) {
    withNumber(packing.kind, [&](auto number) {
        withNumber(slab.kind, [&](auto value) {
            unpackAs<decltype(number), decltype(value)>(packing, numbers, slab, chunk, fill, what);
        });
    });
}

void packChunk(const Packing &packing, const WrittenSlab &slab, const SlabChunk &chunk, std::byte *numbers,
               const std::string &what) {
    withNumber(packing.kind, [&](auto number) {
        withNumber(slab.kind,
                   [&](auto value) { packAs<decltype(number), decltype(value)>(packing, slab, chunk, numbers, what); });
    });
}

} // namespace DNDS::Detail
