#!/usr/bin/env python3
"""NetCDF files of the netCDF4 package, copied by copy_netcdf, compared with the originals as netCDF4 reads both.

    check_netcdf.py COMMAND... [--file PATH]...

COMMAND is mpiexec ... copy_netcdf; PATHs are files that are compared, too.
"""
import os
import subprocess
import sys
import tempfile

import netCDF4
import numpy as np

UNSIGNED = {"i1": "u1", "i2": "u2", "i4": "u4", "i8": "u8"}


def make(path, form):
    """A file with what readers stumble over."""
    rng = np.random.default_rng(7)
    with netCDF4.Dataset(path, "w", format=form) as file:
        file.title = "what readers stumble over"
        file.setncattr("numbers", np.array([1.5, 2.5], "f4"))
        file.createDimension("time", None)
        file.createDimension("lat", 7)
        file.createDimension("lon", 10)
        file.createDimension("name", 4)
        lat = file.createVariable("lat", "f4", ("lat",))
        lat.units = "degrees_north"
        lat[:] = np.linspace(60, -60, 7)  # decreasing
        time = file.createVariable("time", "f8", ("time",))
        time.units = "hours since 2000-01-01"
        time[:] = [0, 6, 12]
        wide = form in ("NETCDF4", "NETCDF3_64BIT_DATA")
        types = ["i1", "i2", "i4", "f4", "f8"] + (["u1", "u2", "u4", "i8", "u8"] if wide else [])
        for kind in types:
            variable = file.createVariable("plain_" + kind, kind, ("time", "lat", "lon"))
            variable.set_auto_maskandscale(False)
            variable[:] = rng.integers(-100 if kind[0] != "u" else 0, 100, (3, 7, 10)).astype(kind)
        packed = file.createVariable("packed", "i2", ("time", "lat", "lon"), fill_value=-999)
        packed.scale_factor = -0.01
        packed.add_offset = 273.15
        packed.missing_value = np.array([-5, -6], "i2")
        packed.valid_range = np.array([-1000, 900], "i2")
        packed.set_auto_maskandscale(False)
        packed[:] = rng.integers(-1200, 1200, (3, 7, 10))
        packed[0, 0, :4] = [-999, -5, -6, 900]
        turned = file.createVariable("turned", "i1", ("lat", "lon"), fill_value=np.int8(-1))
        turned.setncattr("_Unsigned", "true")
        turned.scale_factor = 0.5
        turned.set_auto_maskandscale(False)
        turned[:] = rng.integers(-128, 128, (7, 10))
        nan = file.createVariable("nan", "f4", ("lat", "lon"), fill_value=np.nan)
        nan.set_auto_maskandscale(False)
        values = rng.random((7, 10)).astype("f4")
        values[2, 3] = np.nan
        nan[:] = values
        holes = file.createVariable("holes", "f8", ("time", "lon"))
        holes[1, :] = np.arange(10)  # the other steps are fill values
        limits = file.createVariable("limits", "i4", ("lon",))
        limits.valid_min = np.int32(3)
        limits.valid_max = np.int32(8)
        limits.set_auto_maskandscale(False)
        limits[:] = np.arange(10)
        scalar = file.createVariable("scalar", "f8", ())
        scalar[...] = 42.5
        text = file.createVariable("text", "S1", ("lat", "name"))
        text[:] = "x"
        if form == "NETCDF4":
            group = file.createGroup("inner")
            deep = group.createVariable("deep", "i2", ("lat", "lon"), zlib=True, chunksizes=(3, 4))
            deep.set_auto_maskandscale(False)
            deep[:] = rng.integers(0, 99, (7, 10))
            words = file.createVariable("words", str, ("name",))
            words[:] = np.array(["a", "b", "c", "d"], object)


def variables(group, prefix=""):
    for name, variable in group.variables.items():
        yield prefix + name, variable
    for name, child in group.groups.items():
        yield from variables(child, prefix + name + "_")


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def compare_raw(original, copy, path):
    original.set_auto_maskandscale(False)
    copy.set_auto_maskandscale(False)
    count = 0
    for name, variable in variables(original):
        if variable.dtype == str or variable.dtype.kind == "S":
            assert name not in copy.variables, name
            continue
        again = copy.variables[name]
        assert again.dimensions == variable.dimensions, name
        assert same(np.asarray(variable[...]), np.asarray(again[...])), f"{path}: {name} differs"
        for key in variable.ncattrs():
            value = variable.getncattr(key)
            if key == "_FillValue" and variable.dtype.kind in "iu" and value != value:
                assert key not in again.ncattrs(), "NaN cannot be an integer"
                continue
            assert np.array_equal(value, again.getncattr(key), equal_nan=not isinstance(value, str)), (name, key)
        for dimension in variable.get_dims():
            assert dimension.isunlimited() == copy.dimensions[dimension.name].isunlimited()
        count += 1
    for key in original.ncattrs():
        assert np.array_equal(original.getncattr(key), copy.getncattr(key)), key
    return count


def compare_values(original, values, path):
    original.set_auto_maskandscale(True)
    values.set_auto_maskandscale(False)
    for name, variable in variables(original):
        if name not in values.variables:
            continue
        expected = np.ma.masked_array(variable[...])
        mask = np.ma.getmaskarray(expected)
        ours = values.variables[name + "_mask"][...]
        assert np.array_equal(mask, ours != 0), f"{path}: missing values of {name} differ"
        numbers = values.variables[name][...]
        assert np.isnan(numbers[mask]).all(), name
        wanted = expected.filled(0).astype("f8")[~mask]
        assert np.allclose(numbers[~mask], wanted, rtol=1e-6 if expected.dtype == np.float32 else 1e-15, atol=0,
                           equal_nan=True), f"{path}: values of {name} differ"


def check(command, path, folder):
    copy, values = os.path.join(folder, "copy.nc"), os.path.join(folder, "values.nc")
    done = subprocess.run([*command, path, copy, values], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with netCDF4.Dataset(path) as original, netCDF4.Dataset(copy) as again, netCDF4.Dataset(values) as unpacked:
        count = compare_raw(original, again, path)
        compare_values(original, unpacked, path)
        print(f"{os.path.basename(path)}: {count} variables are the same; the copy is {again.data_model}")
    return done.stdout


def main():
    command, files = sys.argv[1:], []
    while "--file" in command:
        at = command.index("--file")
        files.append(command[at + 1])
        del command[at:at + 2]
    with tempfile.TemporaryDirectory() as folder:
        for form in ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA", "NETCDF4", "NETCDF4_CLASSIC"):
            path = os.path.join(folder, form + ".nc")
            make(path, form)
            output = check(command, path, folder)
            assert "without numbers: text" in output, output
        for path in files:
            if not os.path.exists(path):
                print(f"SKIPPED: {path} is not there")
                continue
            output = check(command, path, folder)
            if path.endswith("eraint_uvz.nc"):
                assert "_FillValue of 'z' does not fit its type int16: dropped" in output, output


main()
