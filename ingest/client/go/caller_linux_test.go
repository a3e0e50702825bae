package weir

import (
	"runtime"
	"syscall"
	"testing"
)

// callerTime reports the processor time of this thread until the returned
// function is called.
func callerTime(b *testing.B) func() {
	runtime.LockOSThread()
	begun := threadTime(b)
	return func() {
		b.ReportMetric(float64(threadTime(b)-begun)/float64(b.N), "caller-ns/op")
		runtime.UnlockOSThread()
	}
}

func threadTime(b *testing.B) int64 {
	const thread = 1 // RUSAGE_THREAD
	var usage syscall.Rusage
	if err := syscall.Getrusage(thread, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}
