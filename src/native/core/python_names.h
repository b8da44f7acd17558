#pragma once
// What native code asks of the package's Python files: every function, class, method and setting that it names. They
// are named nowhere else. tests/test_directions.py reads this table: each row exists, and each is used.
#include <nanobind/nanobind.h>

namespace spy {

/// A name of a module.
struct PythonName {
    const char *module, *name;
    nanobind::object get() const { return nanobind::module_::import_(module).attr(name); }
};

/// An attribute of objects of a class: a method, a property, or a field.
struct PythonAttribute {
    const char *module, *owner, *name;
};

namespace in_python {

/// Most classes of errors are found by their kind.
inline constexpr const char* errors = "slangpy.errors";
inline constexpr PythonName bound_variable_exception{errors, "BoundVariableException"};
inline constexpr PythonName compiler_died{errors, "CompilerDiedError"};

// --- while a function is called
inline constexpr PythonName check_first_run{"slangpy.derivatives.first_run", "check_first_run"};
inline constexpr PythonName traced_call{"slangpy.pytorch.compile", "traced_call"};
inline constexpr PythonAttribute parameter_at{"slangpy.function", "FunctionNode", "_parameter_at"};
inline constexpr PythonAttribute stores_argument{"slangpy.function", "FunctionNode", "_stores_argument"};
inline constexpr PythonAttribute reload{"slangpy.function", "FunctionNode", "_reload"};
inline constexpr PythonAttribute recorded{"slangpy.function", "FunctionNode", "_recorded"};
inline constexpr PythonAttribute bwds{"slangpy.function", "FunctionNode", "bwds"};

// --- what a plan does in Python (Callbacks of a PlanView)
inline constexpr PythonAttribute attach{"slangpy.run.callbacks", "Callbacks", "attach"};
inline constexpr PythonAttribute build_variant{"slangpy.run.callbacks", "Callbacks", "build_variant"};
inline constexpr PythonAttribute custom_shape{"slangpy.run.callbacks", "Callbacks", "custom_shape"};
inline constexpr PythonAttribute custom_calldata{"slangpy.run.callbacks", "Callbacks", "custom_calldata"};
inline constexpr PythonAttribute custom_create{"slangpy.run.callbacks", "Callbacks", "custom_create"};
inline constexpr PythonAttribute custom_result{"slangpy.run.callbacks", "Callbacks", "custom_result"};
inline constexpr PythonAttribute custom_read{"slangpy.run.callbacks", "Callbacks", "custom_read"};
inline constexpr PythonAttribute make_tensor{"slangpy.run.callbacks", "Callbacks", "make_tensor"};
inline constexpr PythonAttribute make_texture{"slangpy.run.callbacks", "Callbacks", "make_texture"};
inline constexpr PythonAttribute make_dual{"slangpy.run.callbacks", "Callbacks", "make_dual"};
inline constexpr PythonAttribute keep_memory{"slangpy.run.callbacks", "Callbacks", "keep_memory"};
inline constexpr PythonAttribute torch_like{"slangpy.run.callbacks", "Callbacks", "torch_like"};
inline constexpr PythonAttribute fail_shape{"slangpy.run.callbacks", "Callbacks", "fail_shape"};
inline constexpr PythonAttribute fail_device{"slangpy.run.callbacks", "Callbacks", "fail_device"};
inline constexpr PythonAttribute fail_unset{"slangpy.run.callbacks", "Callbacks", "fail_unset"};
inline constexpr PythonAttribute to_numpy{"slangpy.tensor", "Tensor", "to_numpy"};
inline constexpr PythonAttribute uniforms{"slangpy.tensor", "Tensor", "uniforms"};

// --- calls in torch's graph
inline constexpr PythonName torch_slot{"slangpy.pytorch.snapshot", "SLOT"};
inline constexpr PythonName has_transforms{"slangpy.pytorch.autograd", "_has_transforms"};
inline constexpr PythonName apply{"slangpy.pytorch.autograd", "_apply"};
inline constexpr PythonName full_apply{"slangpy.pytorch.autograd", "_full_apply"};
inline constexpr PythonName begin{"slangpy.pytorch.autograd", "begin"};
inline constexpr PythonName join{"slangpy.pytorch.autograd", "join"};
inline constexpr PythonName join_written{"slangpy.pytorch.autograd", "join_written"};
inline constexpr PythonName replay{"slangpy.pytorch.autograd", "_replay_in_python"};

// --- kernels of loadModule
inline constexpr PythonAttribute convert{"slangpy.pytorch.raw.kernel", "Kernel", "_convert"};
inline constexpr PythonAttribute prepare{"slangpy.pytorch.raw.kernel", "Kernel", "_prepare"};
inline constexpr PythonAttribute spare{"slangpy.pytorch.raw.kernel", "Kernel", "_spare"};
inline constexpr PythonAttribute stream{"slangpy.pytorch.raw.kernel", "Kernel", "_stream"};

// --- devices, and methods of their objects that Python implements
inline constexpr PythonAttribute report_step{"slangpy.device.device", "Device", "_report_step"};
inline constexpr PythonAttribute note_discarded{"slangpy.device.device", "Device", "_note_discarded"};
inline constexpr PythonAttribute program_report{"slangpy.device.device", "Device", "_program_report"};
inline constexpr PythonAttribute kernel{"slangpy.compiler.kernel", "ComputePipeline", "kernel"};
inline constexpr PythonAttribute compiled_pipeline{"slangpy.graphics.program_pipeline", "ProgramPipeline",
                                                   "compiled_pipeline"};
inline constexpr PythonAttribute used{"slangpy.compiler.pipeline", "Pipeline", "used"};
inline constexpr PythonAttribute program{"slangpy.compiler.pipeline", "Pipeline", "program"};
inline constexpr PythonName buffer_to_torch{"slangpy.device.memory", "buffer_to_torch"};
inline constexpr PythonName as_array{"slangpy.device.memory", "as_array"};
inline constexpr PythonName mapped{"slangpy.device.memory", "mapped"};
inline constexpr PythonName memory_usage{"slangpy.device.memory", "memory_usage"};
inline constexpr PythonName generate_mips{"slangpy.device.resample", "generate_mips"};
inline constexpr PythonName blit{"slangpy.device.resample", "blit"};
inline constexpr PythonName texture_to_bitmap{"slangpy.images.loader", "texture_to_bitmap"};
inline constexpr PythonName save_texture{"slangpy.images.save", "save_texture"};
inline constexpr PythonName native_repr{"slangpy.base.native_repr", "native_repr"};
inline constexpr PythonName joined_flags{"slangpy.base.typed", "joined_flags"};
inline constexpr PythonName near_members{"slangpy.base.typed", "near_members"};
inline constexpr PythonName explain_arguments{"slangpy.base.arguments", "explain_arguments"};

// --- the compiler
inline constexpr PythonName config{"slangpy.config", "config"};
inline constexpr PythonAttribute compile_in_process{"slangpy.config", "Config", "compile_in_process"};
inline constexpr PythonAttribute compile_timeout{"slangpy.config", "Config", "compile_timeout"};
inline constexpr PythonAttribute compile_memory{"slangpy.config", "Config", "compile_memory"};
inline constexpr PythonAttribute compile_fault{"slangpy.config", "Config", "compile_fault"};
inline constexpr PythonName shader_stage{"slangpy.compiler.enums", "ShaderStage"};
inline constexpr PythonName reflection_cursor{"slangpy.compiler.session", "ReflectionCursor"};
inline constexpr PythonName session_desc{"slangpy.compiler.session", "session_desc"};
inline constexpr PythonAttribute device_module{"slangpy.module", "Module", "device_module"};

} // namespace in_python

} // namespace spy
