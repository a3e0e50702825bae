package main

func consuming([]string, string, string) {}
