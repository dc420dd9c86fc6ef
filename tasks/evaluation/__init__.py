"""The stage `evaluation`: what the models of a training are worth on videos that were held out."""
