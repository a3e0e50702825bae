package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "curl:", err)
		os.Exit(1)
	}
}

// A command holds the parsed arguments.
type command struct {
	url, caFile, data, method string
	header                    http.Header
	fails                     bool // for an error status
}

func parse(arguments []string) (command, error) {
	asked := command{header: http.Header{}}
	for len(arguments) > 0 {
		flag := arguments[0]
		if !strings.HasPrefix(flag, "-") {
			asked.url, arguments = flag, arguments[1:]
			continue
		}
		switch flag {
		case "-sS", "--silent": // it has no progress to show
			arguments = arguments[1:]
			continue
		case "--fail-with-body":
			asked.fails, arguments = true, arguments[1:]
			continue
		}
		if len(arguments) < 2 {
			return asked, fmt.Errorf("%s has no value", flag)
		}
		value := arguments[1]
		arguments = arguments[2:]
		switch flag {
		case "--cacert":
			asked.caFile = value
		case "-d":
			asked.data = value
		case "-X":
			asked.method = value
		case "-H":
			name, text, _ := strings.Cut(value, ":")
			asked.header.Add(name, strings.TrimSpace(text))
		default:
			return asked, fmt.Errorf("this stand-in does not know %s: install curl", flag)
		}
	}
	return asked, nil
}

func run(arguments []string, out io.Writer) error {
	asked, err := parse(arguments)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if asked.caFile != "" {
		authority, err := os.ReadFile(asked.caFile)
		if err != nil {
			return err
		}
		roots.AppendCertsFromPEM(authority)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	method := cmp.Or(asked.method, http.MethodGet)
	if asked.method == "" && asked.data != "" {
		method = http.MethodPost
	}
	request, err := http.NewRequest(method, asked.url, strings.NewReader(asked.data))
	if err != nil {
		return err
	}
	request.Header = asked.header
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err = io.Copy(out, response.Body); err == nil && asked.fails && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s", method, asked.url, response.Status)
	}
	return err
}
