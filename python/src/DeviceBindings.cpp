#include "AnyArray.hpp"
#include "NumpyViews.hpp"

#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Device/KernelScope.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cstring>
#include <memory_resource>
#include <utility>
#include <vector>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// The device side of an array. It shares the memory, and so outlives the array.
struct DeviceView {
    Block block;
    std::shared_ptr<const void> hold;
};

DeviceView deviceViewOf(const AnyArray &self) {
    DNDS_CHECK(Device::available(), NotBuiltError, "{}", Device::unavailableReason());
    DeviceView view;
    view.block = blockOf(*self.base, true, view.hold, MemorySpace::Device);
    return view;
}

bool isCuda() { return Device::name() == "cuda"; }

nb::dict cudaInterface(const DeviceView &self) {
    // What CUDA libraries would read at an emulated device's address is protected, or another process's.
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
    result["stream"] = nb::none(); // whoever filled the array waited for it
    return result;
}

int deviceNumber() { return isCuda() ? Device::deviceInfo().number : 0; }

/// A capsule of DLPack: of the host side where it is current, else of the device.
nb::object dlpackOf(const AnyArray &self) {
    if (self.base->valid(MemorySpace::Host))
        return elementsOf(*self.base, true).attr("__dlpack__")();
    if (!isCuda())
        throw nb::buffer_error("the emulated device is host memory, which other libraries cannot read: use to_host()");
    const DeviceView view = deviceViewOf(self);
    const nb::capsule owner(new std::shared_ptr<const void>(view.hold),
                            [](void *held) noexcept { delete static_cast<std::shared_ptr<const void> *>(held); });
    const nb::ndarray<nb::array_api> array(view.block.data, view.block.shape.size(), view.block.shape.data(), owner,
                                           view.block.strides.data(), dtypeOf(view.block.kind), nb::device::cuda::value,
                                           deviceNumber());
    return nb::cast(array, nb::rv_policy::reference).attr("__dlpack__")();
}

/// Memory of somebody else as memory of an array: the first allocation is that memory, all others are ordinary.
class ForeignMemory final : public std::pmr::memory_resource {
  public:
    ForeignMemory(nb::object owner, void *data, std::size_t bytes)
        : owner_(std::move(owner)), data_(data), bytes_(bytes) {}
    ~ForeignMemory() override {
        if (Py_IsInitialized() == 0) {
            owner_.release(); // the interpreter has gone, and all its objects with it
            return;
        }
        const nb::gil_scoped_acquire python;
        owner_.reset();
    }

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override {
        if (bytes == bytes_ && !std::exchange(taken_, true))
            return data_;
        return defaultHostMemory()->allocate(bytes, alignment);
    }
    void do_deallocate(void *address, std::size_t bytes, std::size_t alignment) override {
        if (address != data_)
            defaultHostMemory()->deallocate(address, bytes, alignment);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override { return this == &other; }

    nb::object owner_;
    void *data_;
    std::size_t bytes_;
    bool taken_ = false;
};

AnyArray fromDlpack(nb::handle given, std::string name) {
    using Given = nb::ndarray<nb::device::cpu, nb::c_contig>;
    Given values;
    if (!nb::try_cast(given, values, false))
        throw nb::type_error("what becomes an array is writable, contiguous, and in host memory: NumPy arrays, or "
                             "tensors that support DLPack");
    DNDS_CHECK(values.ndim() == 1 || values.ndim() == 2, ArgumentError,
               "'{}' would have {} dimensions: arrays are [rows] or [rows, width]", name, values.ndim());
    const nb::object numpy = nb::cast(nb::ndarray<nb::numpy>(values.handle()), nb::rv_policy::reference);
    const ElementKind kind = elementKindOf(numpy.attr("dtype"));
    const auto width = static_cast<rowsize>(values.ndim() == 2 ? values.shape(1) : 1);
    AnyArray made;
    made.comm = commOf(nb::none());
    made.base = withType(kind, RowKind::Fixed, [&](auto element, auto rows) -> std::shared_ptr<ArrayBase> {
        return std::make_shared<ArrayOf<decltype(element), rows.value>>(name, made.comm->view);
    });
    made.base->resize(static_cast<index>(values.shape(0)), width);
    if (values.nbytes() > 0) {
        // Moving into the memory copies what the array holds, so the array holds what is there already.
        std::memcpy(made.base->rowLayout(MemorySpace::Host, Access::Write).parts[0].base, values.data(),
                    values.nbytes());
        made.base->rehost(std::make_shared<ForeignMemory>(nb::borrow(given), values.data(), values.nbytes()));
    }
    return made;
}

/// Calls `kernel` with the device side of each array, as a kernel would see it.
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
        "launch", &launch, "kernel"_a, "arrays"_a,
        nb::sig("def launch(kernel: collections.abc.Callable[..., object], *arrays: Array) -> None"),
        R"(Calls `kernel` with the device side of each array, where its values must be current; host sides become stale.

On CUDA it gets DeviceView objects, which CuPy, PyTorch and Numba take as arrays. On the emulated device it gets NumPy
arrays that it must not keep: their memory faults outside of the call, as device memory does. Local.)");
    nb::class_<DeviceView>(module, "DeviceView",
                           R"(The device side of an array, for CuPy (cupy.asarray), PyTorch (torch.as_tensor) and Numba.

It shares the memory, which lives as long as the view.)")
        .def_prop_ro("__cuda_array_interface__", &cudaInterface, nb::sig("def __cuda_array_interface__(self) -> dict"),
                     "Version 3 of the interface. AttributeError on the emulated device.");
    nb::class_<AnyArray> type = nb::borrow<nb::class_<AnyArray>>(module.attr("Array"));
    type.def(
            "to_device", [](AnyArray &self) { self.base->toDevice(); }, Release(),
            "Makes the device side current, and waits. Raises NotBuiltError without a device.")
        .def(
            "to_host", [](AnyArray &self) { self.base->toHost(); }, Release(),
            "Makes the host side current, and waits.")
        .def_prop_ro(
            "on_host", [](const AnyArray &self) { return self.base->valid(MemorySpace::Host); },
            "Whether the host has the current values.")
        .def_prop_ro(
            "on_device", [](const AnyArray &self) { return self.base->valid(MemorySpace::Device); },
            "Whether the device has the current values.")
        .def("device_view", &deviceViewOf,
             "The device side, for writing: the host side becomes stale. Raises StaleError, NotBuiltError.")
        .def(
            "__dlpack__", [](const AnyArray &self, const nb::kwargs &) { return dlpackOf(self); }, "kwargs"_a,
            nb::sig("def __dlpack__(self, **kwargs: object) -> object"),
            "DLPack: the host side where it is current, else the device's, without copying.")
        .def(
            "__dlpack_device__",
            [](const AnyArray &self) {
                return self.base->valid(MemorySpace::Host)
                           ? nb::make_tuple(static_cast<int>(nb::device::cpu::value), 0)
                           : nb::make_tuple(static_cast<int>(nb::device::cuda::value), deviceNumber());
            },
            nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
        .def_static(
            "from_dlpack", &fromDlpack, "values"_a, nb::kw_only(), "name"_a = "",
            nb::sig("def from_dlpack(values: object, *, name: str = '') -> Array"),
            R"(An array of fixed rows in the memory of `values`, which it keeps: [rows] or [rows, width], contiguous, on the
host. After a resize the array has memory of its own.)");
}

} // namespace DNDS::Python
