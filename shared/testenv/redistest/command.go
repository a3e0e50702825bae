package redistest

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// Command sends one command to a database and returns the first line of
// the answer. A refused command is an error.
func Command(ctx context.Context, address, line string) (answer string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("not a URL")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // what waits for it fails then
	defer stop()
	in := bufio.NewReader(conn)
	for _, line := range append(greeting(u), line) {
		if answer, err = ask(conn, in, line); err != nil {
			return "", err
		}
	}
	return answer, nil
}

func ask(conn net.Conn, in *bufio.Reader, line string) (string, error) {
	if _, err := fmt.Fprintf(conn, "%s\r\n", line); err != nil {
		return "", err
	}
	answer, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(answer, "-") {
		return "", errors.New(strings.TrimSpace(answer[1:]))
	}
	return strings.TrimSpace(answer), nil
}

// ping returns nil once a server answers.
func ping(ctx context.Context, address string) error {
	_, err := Command(ctx, address, "PING")
	return err
}

// greeting signs in and chooses the database.
func greeting(u *url.URL) []string {
	lines := []string{"SELECT " + cmp.Or(strings.Trim(u.Path, "/"), "0")}
	if password, ok := u.User.Password(); ok {
		lines = append([]string{"AUTH " + cmp.Or(u.User.Username(), "default") + " " + password}, lines...)
	}
	return lines
}
