package trace

import "strings"

// Elixir and Erlang: "(shop 0.1.0) lib/cart.ex:12: Cart.total/2" and {cart,total,2,[{file,"src/cart.erl"},{line,12}]}.

var beamForms = []form{
	formOf("{$mod^,$fn^,$_[{file,\"$file\"$_{line,$line}$_"), formOf("[{$mod^,$fn^,$_[{file,\"$file\"$_{line,$line}$_"),
	formOf("{$mod^,$fn^,$_[{file,\"$file\"$_"), formOf("[{$mod^,$fn^,$_[{file,\"$file\"$_"),
	formOf("in function $mod^:$fn/$_ ($file~.erl, line $line)"), formOf("in call from $mod^:$fn/$_ ($file~.erl, line $line)"),
	formOf("($mod) $place~.ex|.exs|.erl: $fn").checked(beamCall),
	formOf("$place~.ex|.exs|.erl: $fn").checked(beamCall),
}

// beamCall names a function without its arguments, and its module without the version.
func beamCall(f *Frame) bool {
	f.Module, _, _ = strings.Cut(f.Module, " ")
	withoutArguments(f)
	if i := strings.LastIndex(f.Function, " in "); strings.HasPrefix(f.Function, "anonymous fn") && i > 0 {
		f.Function = f.Function[i+len(" in "):]
	}
	return f.Function != ""
}

var beamMarks = []markForm{
	{header, formOf("** ($type) $msg")}, {header, formOf("$_] ** ($type) $msg")}, {header, formOf("** {$type,[{$_")}, {header, formOf("$class")},
}

func beamInApp(f *Frame) bool {
	return !beamLibraries[f.Module] && !strings.HasPrefix(f.File, "deps/") && !strings.Contains(f.File, "/deps/")
}

func beamIdentity(dst []byte, f *Frame) []byte {
	if strings.HasSuffix(f.File, ".erl") && f.Module != "" && strings.IndexByte(f.Function, '.') < 0 {
		dst = append(append(dst, f.Module...), ':')
	}
	name, _, _ := strings.Cut(f.Function, "\"-") // Enum."-map/2-lists^map/1-0-"/2
	return append(dst, strings.TrimPrefix(name[:cutAt(name, 0, '/')], ":")...)
}
