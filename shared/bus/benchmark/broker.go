package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"

	"github.com/weirlog/weir/shared/embedded/kafka"
)

// envBroker turns this program into an embedded broker, in its own
// process so that its CPU is not counted as a client's.
const envBroker = "WEIR_BENCH_IS_BROKER"

// serve runs the broker until standard input ends.
func serve() error {
	dir, err := os.MkdirTemp("", "weir-bench-bus-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	broker, err := kafka.Start(kafka.Config{Open: true, Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, broker.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, broker.Close())
}

func startEmbedded() (address string, stop func(), err error) {
	program, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	command := exec.Command(program)
	command.Env = append(os.Environ(), envBroker+"=1")
	command.Stderr = os.Stderr
	in, noInput := command.StdinPipe()
	out, noOutput := command.StdoutPipe()
	if err := errors.Join(noInput, noOutput, command.Start()); err != nil {
		return "", nil, err
	}
	address, err = bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(address), func() {
		in.Close()
		command.Wait() //nolint:errcheck // its work is done
	}, err
}
