package weir

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
)

// maxFrames is how many frames of a stack an entry has.
const maxFrames = 64

// faultOf writes err as the error of an entry, with the frames that err has,
// or those given.
func (e *encoder) faultOf(err error, pcs []uintptr) {
	e.buf = append(e.buf, `,"error":{"type":`...)
	e.buf = appendString(e.buf, typeOf(err))
	e.buf = append(e.buf, `,"message":`...)
	e.any(plainError{err})
	if own := stackOf(err); own != nil {
		pcs = own
	}
	if len(pcs) > 0 {
		e.buf = append(e.buf, `,"stack_trace":[`...)
		e.frames(pcs[:min(len(pcs), maxFrames)])
		e.buf = append(e.buf, ']')
	}
	e.buf = append(e.buf, '}')
}

// A plainError is an error by its text, even if it encodes otherwise.
type plainError struct{ error }

// frames writes each as Go prints it: the function, and its place.
func (e *encoder) frames(pcs []uintptr) {
	first := true
	for frames := runtime.CallersFrames(pcs); ; {
		frame, more := frames.Next()
		if frame.Function != "" && frame.Function != "runtime.goexit" {
			if !first {
				e.buf = append(e.buf, ',')
			}
			first = false
			e.buf = appendString(e.buf, frame.Function+"(...)\n\t"+frame.File+":"+strconv.Itoa(frame.Line))
		}
		if !more {
			return
		}
	}
}

// typeOf names the type of the first error that is not only wrapped around
// another one.
func typeOf(err error) string {
	name := ""
	for ; err != nil; err = errors.Unwrap(err) {
		name = strings.TrimPrefix(fmt.Sprintf("%T", err), "*")
		switch name {
		case "fmt.wrapError", "errors.withStack", "errors.withMessage": // the latter of github.com/pkg/errors
		default:
			return name
		}
	}
	return name
}

// stackOf returns the frames of the innermost error that has some: by
// StackTrace of github.com/pkg/errors and its like, or by Callers.
func stackOf(err error) (pcs []uintptr) {
	for ; err != nil; err = errors.Unwrap(err) {
		if with, ok := err.(interface{ Callers() []uintptr }); ok {
			pcs = with.Callers()
		} else if frames := stackTraceOf(err); frames != nil {
			pcs = frames
		}
	}
	return pcs
}

// stackTraceOf calls StackTrace, whose type is of a package that this one
// does not import: a slice of uintptr.
func stackTraceOf(err error) []uintptr {
	method := reflect.ValueOf(err).MethodByName("StackTrace")
	if !method.IsValid() || method.Type().NumIn() != 0 || method.Type().NumOut() != 1 {
		return nil
	}
	if out := method.Type().Out(0); out.Kind() != reflect.Slice || out.Elem().Kind() != reflect.Uintptr {
		return nil
	}
	frames := method.Call(nil)[0]
	pcs := make([]uintptr, frames.Len())
	for i := range pcs {
		pcs[i] = uintptr(frames.Index(i).Uint())
	}
	return pcs
}

// callers returns the stack of a log call, from pc on: what is above is the
// logger. The stack without it, as of a wrapper that skips frames, is whole.
func callers(pcs []uintptr, pc uintptr) []uintptr {
	pcs = pcs[:runtime.Callers(3, pcs)] // without this function and its caller
	for i := range pcs {
		if pcs[i] == pc {
			return pcs[i:]
		}
	}
	return pcs
}
