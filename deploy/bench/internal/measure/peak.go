package measure

import "time"

// peakPoll is the interval of looks at a process's memory.
const peakPoll = 20 * time.Millisecond

// WatchPeak watches a process's resident memory; the returned function
// ends that and returns the peak in bytes.
func WatchPeak(pid int) func() int64 {
	stop, peak := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		for {
			most = max(most, UsageOf(pid).Memory)
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(peakPoll):
			}
		}
	}()
	return func() int64 {
		close(stop)
		return <-peak
	}
}
