#include "AnyArray.hpp"
#include "Comm.hpp"
#include "Errors.hpp"
#include "GivenMemory.hpp"
#include "NumpyViews.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// The device side of an array. It shares the memory and so outlives the array.
struct DeviceView {
    Block block;
    std::shared_ptr<const void> hold;
};

DeviceView deviceViewOf(const AnyArray &self) {
    self.requireLanded("be used on the device");
    DNDS_CHECK(Device::available(), NotBuiltError, "{}", Device::unavailableReason());
    DeviceView view;
    view.block = blockOf(*self.base, true, view.hold, MemorySpace::Device);
    return view;
}

bool isCuda() { return Device::name() == "cuda"; }

nb::dict cudaInterface(const DeviceView &self) {
    // An emulated device's memory is protected, or belongs to another process.
    if (!isCuda())
        throw nb::attribute_error("the emulated device is host memory, which CUDA libraries cannot read: use "
                                  "dnds.launch");
    const nb::dlpack::dtype type = dtypeOf(self.block.kind);
    nb::list shape;
    nb::list strides;
    for (std::size_t d = 0; d < self.block.shape.size(); ++d) {
        shape.append(self.block.shape[d]);
        strides.append(self.block.strides[d] * type.bits / 8);
    }
    const char code = type.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float)  ? 'f'
                      : type.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::UInt) ? 'u'
                                                                                             : 'i';
    nb::dict result;
    result["shape"] = nb::tuple(shape);
    result["strides"] = nb::tuple(strides);
    result["typestr"] = fmt::format("<{}{}", code, type.bits / 8);
    result["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(self.block.data), false);
    result["version"] = 3;
    result["stream"] = nb::none(); // the array's writer has synchronised
    return result;
}

/// A stream of CUDA: its address, or an object of cuda.core, PyTorch or CuPy that has it; None is the default stream.
void *streamOf(nb::handle stream) {
    if (stream.is_none())
        return nullptr;
    nb::object address = nb::borrow(stream);
    if (nb::hasattr(stream, "__cuda_stream__"))
        address = stream.attr("__cuda_stream__")()[1];
    else
        for (const char *attribute : {"cuda_stream", "ptr"})
            if (nb::hasattr(stream, attribute)) {
                address = stream.attr(attribute);
                break;
            }
    std::uintptr_t number = 0;
    if (!nb::try_cast(address, number, false))
        throw nb::type_error("a stream is None, an address, or an object of CuPy, PyTorch or cuda.core");
    return reinterpret_cast<void *>(number); // NOLINT(performance-no-int-to-ptr)
}

void recordUse(nb::handle stream) {
    DNDS_CHECK(Device::available(), NotBuiltError, "{}", Device::unavailableReason());
    Device::recordUse(streamOf(stream));
}

/// Device memory in a capsule of DLPack.
struct SharedByDlpack {
    std::shared_ptr<const void> hold;
    void *stream; ///< the consumer's stream; null for the default stream, or if the consumer did not name one
};

void release(void *held) noexcept {
    auto *shared = static_cast<SharedByDlpack *>(held);
    try {
        if (shared->stream != nullptr)
            Device::recordUse(shared->stream);
        delete shared;
    } catch (const std::exception &error) { // the stream may still use it
        warn("device memory that was shared by DLPack is never freed: {}", error.what());
    }
}

/// The stream of a consumer as the array API standard numbers it.
void *consumersStream(nb::handle stream) {
    if (stream.is_none())
        return nullptr;
    std::int64_t number = 0;
    if (!nb::try_cast(stream, number, false) || number == 0 || number < -1)
        throw nb::buffer_error("DLPack's streams of CUDA are -1, 1, 2, or an address");
    return number == -1 ? nullptr : reinterpret_cast<void *>(number); // NOLINT(performance-no-int-to-ptr)
}

int deviceNumber() { return isCuda() ? Device::deviceInfo().number : 0; }

std::pair<int, int> dlpackDeviceOf(const AnyArray &self) {
    return self.base->valid(MemorySpace::Host) ? std::pair{static_cast<int>(nb::device::cpu::value), 0}
                                               : std::pair{static_cast<int>(nb::device::cuda::value), deviceNumber()};
}

/// A capsule of DLPack: of the host side where it is current, else of the device. Arguments as the array API standard
/// has them; the capsule is of the version before 1.0, which all consumers take.
nb::object dlpackOf(const AnyArray &self, nb::handle stream, nb::handle, nb::handle wanted, nb::handle copy) {
    self.requireLanded("be shared");
    const bool onHost = self.base->valid(MemorySpace::Host);
    const std::pair<int, int> device = dlpackDeviceOf(self);
    if (!wanted.is_none()) {
        const auto [type, number] = nb::cast<std::pair<int, int>>(wanted);
        if (type != device.first || number != device.second)
            throw nb::buffer_error(fmt::format("the array is on DLPack's device ({}, {}), and not copied to ({}, {}): "
                                               "use to_host() or to_device()",
                                               device.first, device.second, type, number)
                                       .c_str());
    }
    const bool copied = !copy.is_none() && nb::cast<bool>(copy);
    if (onHost) {
        const nb::object elements = elementsOf(*self.base, !copied);
        return (copied ? nb::object(elements.attr("copy")()) : elements).attr("__dlpack__")();
    }
    if (!isCuda())
        throw nb::buffer_error("the emulated device is host memory, which other libraries cannot read: use to_host()");
    if (copied)
        throw nb::buffer_error("an array on the device is shared without copying: copy it where it arrives");
    const DeviceView view = deviceViewOf(self);
    const nb::capsule owner(new SharedByDlpack{view.hold, consumersStream(stream)}, &release);
    const nb::ndarray<nb::array_api> array(view.block.data, view.block.shape.size(), view.block.shape.data(), owner,
                                           view.block.strides.data(), dtypeOf(view.block.kind), nb::device::cuda::value,
                                           deviceNumber());
    return nb::cast(array, nb::rv_policy::reference).attr("__dlpack__")();
}

/// Memory that is given away for reading and writing: as long as this is kept, its owner neither moves nor frees it.
using Given = nb::ndarray<nb::device::cpu, nb::c_contig>;

/// Keeps the given object. It is released under Python's lock; after the interpreter's end it stays, as all objects do.
std::shared_ptr<const void> keep(Given &&given) {
    return {new Given(std::move(given)), [](Given *kept) {
                if (Py_IsInitialized() == 0)
                    return;
                const nb::gil_scoped_acquire python;
                delete kept;
            }};
}

AnyArray fromDlpack(nb::handle given, std::string name) {
    Given values;
    if (!nb::try_cast(given, values, false))
        throw nb::type_error("memory for an array must be writable, contiguous and on the host: NumPy arrays, or "
                             "tensors that support DLPack");
    DNDS_CHECK(values.ndim() == 1 || values.ndim() == 2, ArgumentError,
               "'{}' would have {} dimensions: arrays are [rows] or [rows, width]", name, values.ndim());
    DNDS_CHECK(values.ndim() == 1 || values.shape(1) <= std::numeric_limits<rowsize>::max(), ArgumentError,
               "'{}' would have rows of {} elements: 2^31 - 1 at most", name, values.shape(1));
    const ElementKind kind = elementKindOf(values.dtype());
    const auto width = static_cast<rowsize>(values.ndim() == 2 ? values.shape(1) : 1);
    AnyArray made;
    made.comm = commOf(nb::none());
    made.base = withType(kind, RowKind::Fixed, [&](auto element, auto rows) -> std::shared_ptr<ArrayBase> {
        return std::make_shared<ArrayOf<decltype(element), rows.value>>(name, made.comm->view);
    });
    made.base->resize(static_cast<index>(values.shape(0)), width);
    if (const std::size_t bytes = values.nbytes(); bytes > 0) {
        void *const data = values.data();
        // Moving into the memory copies the array's elements: they must be those already there.
        std::memcpy(made.base->rowLayout(MemorySpace::Host, Access::Write).parts[0].base, data, bytes);
        made.base->rehost(std::make_shared<GivenMemory>(keep(std::move(values)), data, bytes, defaultHostMemory()));
    }
    return made;
}

/// Each rank takes the device of its number on the machine; throws on all ranks if one has none.
void useDevice(nb::handle comm) {
    const CommPtr shared = commOf(comm);
    const nb::gil_scoped_release others;
    const int number = rankOnMachine(shared->view);
    shared->view.guarded([&] {
        Device::requireDevice("choose a device");
        Device::useDevice(number);
    });
}

/// Calls `kernel` with the device side of each array, as in a kernel.
void launch(const nb::callable &kernel, const nb::args &arrays) {
    nb::list views;
    for (const nb::handle array : arrays) {
        const DeviceView view = deviceViewOf(nb::cast<const AnyArray &>(array));
        views.append(isCuda() ? nb::cast(view) : numpyOf(view.block, view.hold, true));
    }
    const Device::KernelScope scope;
    kernel(*views);
}

} // namespace

void bindDevice(nb::module_ &module) {
    using Release = nb::call_guard<nb::gil_scoped_release>;
    module.attr("device_name") = nb::str(Device::name().data(), Device::name().size());
    module.def("device_available", &Device::available, "Whether this process can use a device. Local.");
    module.def("device_unavailable_reason", &Device::unavailableReason, "Why it cannot, and what to do. Local.");
    module.def(
        "use_device", &useDevice, "comm"_a.none() = nb::none(),
        nb::sig("def use_device(comm: mpi4py.MPI.Comm | None = None) -> None"),
        R"(Selects a device for this rank: its number on the machine, modulo the number of visible devices. Collective.

Call it before allocating on a device. Raises NotBuiltError on all ranks if one has no device.)");
    module.def(
        "record_use", &recordUse, "stream"_a.none(), nb::sig("def record_use(stream: object) -> None"),
        R"(Keeps device memory that is freed from now on from being reused until the work queued so far on `stream` has run.

Call it after CuPy, PyTorch or Numba have queued work on a stream of theirs that uses device views, before these are
dropped. A stream is its address, or an object of CuPy, PyTorch or cuda.core; the default stream (None) needs no such
call. Local, does not wait. Raises StateError while the stream is captured, NotBuiltError without a device.)");
    module.def(
        "launch", &launch, "kernel"_a, "arrays"_a,
        nb::sig("def launch(kernel: collections.abc.Callable[..., object], *arrays: Array) -> None"),
        R"(Calls `kernel` with the device side of each array, where its values must be current; host sides become stale.

On CUDA it gets DeviceView objects, which CuPy, PyTorch and Numba accept as arrays; see `record_use`. On the emulated device it gets NumPy
arrays that it must not keep: outside the call their memory faults, like device memory. Local.)");
    nb::class_<DeviceView>(module, "DeviceView",
                           R"(The device side of an array, for CuPy (cupy.asarray), PyTorch (torch.as_tensor) and Numba.

It shares the memory and keeps it alive; for work that is queued when it is dropped see `record_use`.)")
        .def_prop_ro("__cuda_array_interface__", &cudaInterface, nb::sig("def __cuda_array_interface__(self) -> dict"),
                     "Version 3 of the interface. AttributeError on the emulated device.");
    nb::class_<AnyArray> type = nb::borrow<nb::class_<AnyArray>>(module.attr("Array"));
    type.def(
            "to_device",
            [](AnyArray &self) {
                self.requireLanded("be copied to the device");
                self.base->toDevice();
            },
            Release(), "Makes the device side current; waits. Raises NotBuiltError without a device.")
        .def(
            "to_host",
            [](AnyArray &self) {
                self.requireLanded("be copied to the host");
                self.base->toHost();
            },
            Release(), "Makes the host side current; waits.")
        .def_prop_ro(
            "on_host", [](const AnyArray &self) { return self.base->valid(MemorySpace::Host); },
            "Whether the host has the current values.")
        .def_prop_ro(
            "on_device", [](const AnyArray &self) { return self.base->valid(MemorySpace::Device); },
            "Whether the device has the current values.")
        .def("device_view", &deviceViewOf,
             "The device side, for writing: the host side becomes stale. Raises StaleError, NotBuiltError.")
        .def("__dlpack__", &dlpackOf, nb::kw_only(), "stream"_a.none() = nb::none(),
             "max_version"_a.none() = nb::none(), "dl_device"_a.none() = nb::none(), "copy"_a.none() = nb::none(),
             nb::sig("def __dlpack__(self, *, stream: object = None, max_version: tuple[int, int] | None = None, "
                     "dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> object"),
             R"(DLPack: the host side if it is current, else the device's, already synchronised.

When the consumer drops it, the device's memory is not reused before the work queued on `stream` has run: the stream, which
CuPy and PyTorch tell, has to exist until then. Shared unless `copy` is True. Raises BufferError if the array is not on `dl_device`, and for copies on the device.)")
        .def("__dlpack_device__", &dlpackDeviceOf, nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
        .def_static(
            "from_dlpack", &fromDlpack, "values"_a, nb::kw_only(), "name"_a = "",
            nb::sig("def from_dlpack(values: object, *, name: str = '') -> Array"),
            R"(An array of fixed rows in the memory of `values`, which it keeps alive: [rows] or [rows, width], contiguous, on the
host. After a resize the array has memory of its own. Until then `values` cannot be resized, if its type supports the check.)");
}

} // namespace DNDS::Python
