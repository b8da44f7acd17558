#include "python/slang/options.h"

namespace spy {
namespace {

/// str(value); UnicodeEncodeError for text that is no Unicode.
std::string text_of(nb::handle value)
{
    const nb::str text(value);
    Py_ssize_t size = 0;
    const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (!data)
        throw nb::python_error();
    return {data, size_t(size)};
}

bool flag_option(const std::string& name, nb::handle value)
{
    if (!nb::isinstance<nb::bool_>(value))
        fail(ErrorKind::type, name, ": expected a bool, got ", text_of(nb::repr(value)));
    return nb::cast<bool>(value);
}

/// An option as text, from a str or an enum member.
std::string option_text(nb::handle value)
{
    return text_of(nb::hasattr(value, "name") ? nb::object(value.attr("name")) : nb::borrow(value));
}

template <typename E>
E option_enum(const char* field, nb::handle value, std::initializer_list<const char*> names)
{
    const std::string text = option_text(value);
    int index = 0;
    std::string known;
    for (const char* name : names) {
        if (text == name)
            return E(index);
        known += cat(index ? ", " : "", name);
        ++index;
    }
    fail_value(field, ": unknown value \"", text, "\"; expected one of ", known);
}

SlangOptimizationLevel optimization_option(nb::handle value)
{
    return option_enum<SlangOptimizationLevel>("optimization", value, {"none", "default", "high", "maximal"});
}
SlangFloatingPointMode floating_point_option(nb::handle value)
{
    return option_enum<SlangFloatingPointMode>("floating_point_mode", value, {"default", "fast", "precise"});
}
SlangDebugInfoLevel debug_info_option(nb::handle value)
{
    return option_enum<SlangDebugInfoLevel>("debug_info", value, {"none", "minimal", "standard", "maximal"});
}

std::vector<std::string> text_list(nb::handle value)
{
    std::vector<std::string> result;
    if (nb::isinstance<nb::str>(value) || nb::hasattr(value, "__fspath__")) {
        result.push_back(text_of(value));
        return result;
    }
    for (nb::handle item : value)
        result.push_back(text_of(item));
    return result;
}

std::vector<std::pair<std::string, std::string>> define_list(nb::handle value)
{
    std::vector<std::pair<std::string, std::string>> result;
    nb::object items = nb::hasattr(value, "items") ? value.attr("items")() : nb::borrow(value);
    for (nb::handle item : items)
        result.emplace_back(text_of(nb::handle(item[nb::int_(0)])), text_of(nb::handle(item[nb::int_(1)])));
    return result;
}

[[noreturn]] void unknown_field(const char* what, const std::string& name, const char* known)
{
    fail(ErrorKind::type, what, " has no field \"", name, "\"; known: ", known);
}

bool row_major_option(nb::handle value)
{
    const std::string text = option_text(value);
    if (text != "row_major" && text != "column_major")
        fail_value("matrix_layout: unknown value \"", text, "\"; expected row_major or column_major");
    return text == "row_major";
}

} // namespace

SlangTarget parse_target(nb::handle value)
{
    SlangTarget target;
    if (nb::isinstance<nb::str>(value)) {
        target.format = text_of(value);
        return target;
    }
    nb::dict values;
    if (nb::isinstance<nb::dict>(value))
        values = nb::cast<nb::dict>(value);
    else // a device's compile target
        for (const char* name : {"format", "profile", "capabilities", "defines"})
            values[name] = value.attr(name);
    for (auto [key, item] : values) {
        const std::string name = text_of(key);
        if (name == "format")
            target.format = text_of(item);
        else if (name == "profile")
            target.profile = text_of(item);
        else if (name == "capabilities")
            target.capabilities = text_list(item);
        else if (name == "defines")
            target.defines = define_list(item);
        else
            unknown_field("a compile target", name, "format, profile, capabilities, defines");
    }
    return target;
}

SessionOptions parse_options(nb::dict values)
{
    SessionOptions options;
    for (auto [key, value] : values) {
        const std::string name = text_of(key);
        if (name == "include_paths")
            options.include_paths = text_list(value);
        else if (name == "library_paths")
            options.library_paths = text_list(value);
        else if (name == "defines")
            options.defines = define_list(value);
        else if (name == "optimization")
            options.optimization = optimization_option(value);
        else if (name == "floating_point_mode")
            options.floating_point_mode = floating_point_option(value);
        else if (name == "debug_info")
            options.debug_info = debug_info_option(value);
        else if (name == "matrix_layout")
            options.row_major = row_major_option(value);
        else if (name == "enable_warnings")
            options.enable_warnings = text_list(value);
        else if (name == "disable_warnings")
            options.disable_warnings = text_list(value);
        else if (name == "warnings_as_errors")
            options.warnings_as_errors = text_list(value);
        else if (name == "downstream_args")
            options.downstream_args = text_list(value);
        else if (name == "enable_experimental_features")
            options.experimental = flag_option(name, value);
        else if (name == "report_downstream_time")
            options.report_downstream_time = flag_option(name, value);
        else if (name == "report_perf_benchmark")
            options.report_perf_benchmark = flag_option(name, value);
        else if (name == "skip_spirv_validation")
            options.skip_spirv_validation = flag_option(name, value);
        else if (name == "dump_intermediates")
            options.dump_intermediates = flag_option(name, value);
        else if (name == "dump_intermediates_prefix")
            options.dump_intermediates_prefix = text_of(value);
        else if (name == "rewrites") // ours, not the user's
            options.rewrites = text_of(value);
        else if (name == "inline_differentiable")
            options.inline_differentiable = flag_option(name, value);
        else if (name == "whole_program") // these three, too
            options.whole_program = flag_option(name, value);
        else if (name == "line_directives")
            options.line_directives = flag_option(name, value);
        else if (name == "arguments")
            options.arguments = text_list(value);
        else
            unknown_field("SlangCompilerOptions", name,
                          "include_paths, library_paths, defines, optimization, floating_point_mode, debug_info, "
                          "matrix_layout, enable_warnings, disable_warnings, warnings_as_errors, downstream_args, "
                          "report_downstream_time, report_perf_benchmark, skip_spirv_validation, dump_intermediates, "
                          "dump_intermediates_prefix, enable_experimental_features");
    }
    return options;
}

LinkOptions parse_link_options(nb::handle source)
{
    LinkOptions options;
    if (source.is_none())
        return options;
    nb::object values = nb::hasattr(source, "to_dict") ? source.attr("to_dict")() : nb::borrow(source);
    if (!nb::isinstance<nb::dict>(values))
        fail(ErrorKind::type, "link_options: expected SlangLinkOptions or a dict, got ", text_of(nb::repr(source)));
    for (auto [key, value] : nb::cast<nb::dict>(values)) {
        const std::string name = text_of(key);
        if (value.is_none())
            continue;
        if (name == "optimization")
            options.optimization = optimization_option(value);
        else if (name == "floating_point_mode")
            options.floating_point_mode = floating_point_option(value);
        else if (name == "debug_info")
            options.debug_info = debug_info_option(value);
        else if (name == "downstream_args")
            options.downstream_args = text_list(value);
        else if (name == "dump_intermediates")
            options.dump_intermediates = flag_option(name, value);
        else if (name == "dump_intermediates_prefix")
            options.dump_intermediates_prefix = text_of(value);
        else
            unknown_field("SlangLinkOptions", name,
                          "optimization, floating_point_mode, debug_info, downstream_args, dump_intermediates, "
                          "dump_intermediates_prefix");
    }
    return options;
}

std::vector<TypeConformance> parse_conformances(nb::handle values)
{
    std::vector<TypeConformance> result;
    if (values.is_none())
        return result;
    for (nb::handle value : values) {
        TypeConformance item;
        if (nb::isinstance<nb::tuple>(value) && !nb::hasattr(value, "interface_name")) {
            nb::tuple parts = nb::cast<nb::tuple>(value);
            if (parts.size() < 2 || parts.size() > 3)
                fail_value("a type conformance is (interface name, type name) or (interface name, type name, id), got ",
                           parts.size(), " items");
            if (!nb::isinstance<nb::str>(parts[0]) || !nb::isinstance<nb::str>(parts[1]) ||
                (parts.size() == 3 && !nb::isinstance<nb::int_>(parts[2])))
                fail(ErrorKind::type,
                     "a type conformance is (interface name, type name[, id]): two str and an int, got ",
                     text_of(nb::repr(value)));
            item.interface_name = text_of(parts[0]);
            item.type_name = text_of(parts[1]);
            item.id = -1;
            if (parts.size() == 3 && !nb::try_cast(parts[2], item.id))
                fail_value("a type conformance's id fits 64 bits, got ", text_of(nb::repr(parts[2])));
        } else {
            if (!nb::hasattr(value, "interface_name") || !nb::hasattr(value, "type_name"))
                fail(ErrorKind::type, "expected a TypeConformance or a tuple (interface name, type name[, id]), got ",
                     text_of(nb::repr(value)));
            item.interface_name = text_of(value.attr("interface_name"));
            item.type_name = text_of(value.attr("type_name"));
            if (!nb::try_cast(value.attr("id"), item.id))
                fail(ErrorKind::type, "a type conformance's id is an int, got ", text_of(nb::repr(value.attr("id"))));
        }
        result.push_back(std::move(item));
    }
    return result;
}

} // namespace spy
