package bus_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weirlog/weir/shared/testenv"
)

// restartable is a broker in a process of its own and the command that kills it and returns when it runs again.
func restartable(t *testing.T) (brokers, restart []string) {
	t.Helper()
	dir, port := t.TempDir(), freePort(t)
	pidFile := filepath.Join(dir, "pid")
	supervise(t, role{Dir: filepath.Join(dir, "data"), Port: port}, pidFile)
	restart = []string{"sh", "-c", `old=$(cat ` + pidFile + `); kill -9 $old; until [ "$(cat ` + pidFile + `)" != $old ]; do sleep 0.05; done`}
	return []string{fmt.Sprintf("127.0.0.1:%d", port)}, restart
}

func command(t *testing.T, line []string) {
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		t.Errorf("cannot restart the broker: %v: %s", err, out)
	}
}

// supervise keeps a broker running until the test ends and writes down which process it is.
func supervise(t *testing.T, broker role, pidFile string) {
	t.Helper()
	var mu sync.Mutex
	var over bool
	var current *process
	launch := func() *process {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return nil
		}
		current = broker.start(t)
		return current
	}
	first := launch()
	first.await(t)
	note := func(p *process) {
		if err := os.WriteFile(pidFile+".new", []byte(strconv.Itoa(p.cmd.Process.Pid)), 0o600); err != nil {
			t.Error(err)
		}
		os.Rename(pidFile+".new", pidFile)
	}
	note(first)
	var wg sync.WaitGroup
	wg.Go(func() {
		for p := first; p != nil; {
			p.wait()
			if p = launch(); p != nil {
				note(p)
			}
		}
	})
	t.Cleanup(func() {
		mu.Lock()
		over = true
		current.cmd.Process.Kill()
		mu.Unlock()
		wg.Wait()
	})
}

// Ten thousand messages from a hundred publishers reach a subscriber while the broker is killed and started twice. This is the
// suite's TestReconnect without its data race, see TestSuiteReconnect.
func TestReconnect(t *testing.T) {
	brokers, restart := restartable(t)
	publisher, subscriber := pair(t, brokers, "test.reconnect", false)
	defer publisher.Close()
	defer subscriber.Close()
	topic := "test.reconnect"
	ensure(t, brokers, topic, 10, nil)
	messages, err := subscriber.Subscribe(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	const total, publishers = 10_000, 100
	numbers := make(chan int)
	go func() {
		defer close(numbers)
		for i := range total {
			numbers <- i
			if i == total/3 || i == total/2 {
				go command(t, restart)
			}
		}
	}()
	for range publishers {
		go func() {
			for i := range numbers {
				for publisher.Publish(topic, message.NewMessage(strconv.Itoa(i), nil)) != nil {
					time.Sleep(100 * time.Millisecond) // gives a broker that is down a moment
				}
			}
		}()
	}
	missing := make(map[string]bool, total)
	for i := range total {
		missing[strconv.Itoa(i)] = true
	}
	testenv.Eventually(t, 2*patience, func() error {
		for more := true; more; {
			select {
			case m := <-messages:
				delete(missing, m.UUID)
				m.Ack()
			case <-time.After(100 * time.Millisecond):
				more = false
			}
		}
		if len(missing) > 0 {
			return errors.New(strconv.Itoa(len(missing)) + " messages have not arrived")
		}
		return nil
	})
}
