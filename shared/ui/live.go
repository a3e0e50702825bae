package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Live adds what comes to a list, by the script "live". The template "live"
// shows it; the list has the attribute data-live-rows.
type Live struct {
	Events string // address of server-sent events: entry has Nodes as its data
	Newest string // the page with what is newest, for those without scripts
}

// NewLive returns a Live of a page; query is what the events and the page have.
func NewLive(path string, query url.Values) Live {
	after := ""
	if len(query) > 0 {
		after = "?" + query.Encode()
	}
	return Live{Events: path + "/tail" + after, Newest: path + after}
}

// Nodes renders a template of a page as the script "live" takes it, as no
// script may make markup of text: [name, {attribute: value}, child…] for each
// element, and a string for each text.
func (p *Pages) Nodes(page, name string, data any) ([]byte, error) {
	var rendered bytes.Buffer
	if err := p.templates[page]().ExecuteTemplate(&rendered, name, data); err != nil {
		return nil, fmt.Errorf("cannot render %q of page %q: %w", name, page, err)
	}
	nodes, err := html.ParseFragment(&rendered, &html.Node{Type: html.ElementNode, Data: "template", DataAtom: atom.Template})
	if err != nil {
		return nil, fmt.Errorf("cannot read what %q is rendered as: %w", name, err)
	}
	list := []any{}
	for _, node := range nodes {
		list = append(list, treeOf(node))
	}
	return json.Marshal(list)
}

func treeOf(node *html.Node) any {
	if node.Type != html.ElementNode {
		return node.Data
	}
	attributes := map[string]string{} // bounded by those of the element
	for _, a := range node.Attr {
		attributes[a.Key] = a.Val
	}
	tree := []any{node.Data, attributes}
	for child := range node.ChildNodes() {
		tree = append(tree, treeOf(child))
	}
	return tree
}
