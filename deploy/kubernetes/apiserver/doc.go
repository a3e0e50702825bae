// Package apiserver names what an API server of Kubernetes is compiled of:
// the tools of its go.mod, etcd and kube-apiserver. It has no code.
package apiserver
