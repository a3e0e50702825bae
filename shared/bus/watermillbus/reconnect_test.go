package watermillbus_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// restartable returns a broker, and a command for Watermill's suite
// that kills it and returns when it runs again.
func restartable(t *testing.T) (brokers, restart []string) {
	t.Helper()
	cluster := kafkatest.Faulty(t, 1)
	asked, done := filepath.Join(t.TempDir(), "asked"), filepath.Join(t.TempDir(), "done")
	requests, answers := pipe(t, asked), pipe(t, done)
	go func() {
		for lines := bufio.NewScanner(requests); lines.Scan(); {
			cluster.Nodes[0].Restart(t)
			fmt.Fprintln(answers, "done")
		}
	}()
	return cluster.Brokers(), []string{"sh", "-c", `echo please >` + asked + `; read -r answer <` + done}
}

// pipe makes a named pipe that stays open, for other processes to write
// into and read from.
func pipe(t *testing.T, name string) *os.File {
	t.Helper()
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// receive acknowledges messages until n different ones have come.
func receive(t *testing.T, messages <-chan *message.Message, n int) message.Messages {
	t.Helper()
	seen := make(map[string]bool, n)
	var received message.Messages
	for timeout := time.After(4 * bustest.Timeout); len(received) < n; {
		select {
		case m := <-messages:
			if !seen[m.UUID] {
				seen[m.UUID], received = true, append(received, m)
			}
			m.Ack()
		case <-timeout:
			t.Fatalf("%d of %d messages have arrived", len(received), n)
		}
	}
	return received
}
