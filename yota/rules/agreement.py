"""stub"""
LAWS=()
